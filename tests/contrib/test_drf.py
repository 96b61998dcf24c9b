"""Does Django REST framework tell our exceptions with the right status, and say when to come back?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import RequestFactory

from catalog_fallback import exceptions, services
from catalog_fallback.exceptions import ItemNotFound, ItemStopped, ItemUnavailable


@pytest.fixture
def ask(needs: Callable[[str, str], Any], shop: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], Any]:
    """Ask a view of the framework that raises."""
    needs("rest_framework", "djangorestframework")
    from rest_framework.renderers import JSONRenderer  # noqa: PLC0415  # an extra
    from rest_framework.views import APIView  # noqa: PLC0415

    from catalog_fallback.contrib import drf  # noqa: PLC0415

    class Item(APIView):  # type: ignore[misc]  # untyped
        authentication_classes = ()
        permission_classes = ()
        renderer_classes = (JSONRenderer,)

        def get_exception_handler(self) -> Any:
            return drf.exception_handler

        def get(self, request: Any, error: Exception) -> None:
            raise error

    return lambda error: Item.as_view()(RequestFactory().get("/"), error=error)


@pytest.mark.parametrize(
    ("error", "status", "wait"),
    [
        pytest.param(ItemNotFound("secret"), 404, None, id="not-found"),
        pytest.param(exceptions.InvalidItemID("secret"), 400, None, id="bad-id"),
        pytest.param(ItemStopped("secret"), 410, None, id="stopped"),
        pytest.param(ItemStopped("secret", reason="legal"), 451, None, id="legal"),
        pytest.param(ItemUnavailable("secret", retry_after=7.2), 503, "8", id="unavailable"),
        pytest.param(ItemUnavailable("secret", catalog="slow"), 504, "5", id="504"),
        pytest.param(exceptions.CircuitOpen("secret", retry_after=30.0), 503, "30", id="circuit-open"),
    ],
)
def test_our_exceptions(ask: Callable[[Exception], Any], error: Exception, status: int, wait: str | None) -> None:
    """The text is for developers, the status and Retry-After for clients."""
    reply = ask(error)
    assert (reply.status_code, reply.headers.get("Retry-After")) == (status, wait)
    assert "secret" not in str(reply.data)


def test_the_reason_is_asked_for(ask: Callable[[Exception], Any]) -> None:
    """``raise_for_state()`` does not know it."""
    services.stop_item("P0001", reason="legal")
    with pytest.raises(ItemStopped) as raised:
        services.find_item("P0001").raise_for_state()
    assert ask(raised.value).status_code == 451


def test_other_exceptions_are_left_alone(ask: Callable[[Exception], Any]) -> None:
    """What is an error stays one."""
    with pytest.raises(RuntimeError):
        ask(RuntimeError("broken"))
