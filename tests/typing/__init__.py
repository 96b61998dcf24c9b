"""The public API as the type checker of a site sees it: checked by mypy, never run. ``test_api_types`` runs mypy."""
