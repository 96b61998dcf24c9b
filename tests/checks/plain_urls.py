"""Which URLs has a site that does not include the package's?"""

from __future__ import annotations

from typing import Any

urlpatterns: list[Any] = []
