"""What can be asked? A catalog and an ID; which fault a simulated catalog should have."""

from __future__ import annotations

from django import forms
from django.conf import settings

from catalogs.faults import FAULTS
from catalogs.replies import CATALOGS


def _catalogs() -> list[tuple[str, str]]:
    labels = {
        "default": "Things (article number)",
        "books": "Books (ISBN)",
        "products": "Products (barcode)",
        "papers": "Papers (DOI)",
    }
    return [(alias, labels.get(alias, alias)) for alias in settings.CATALOG_FALLBACK]


class LookUpForm(forms.Form):
    """One item of one catalog."""

    catalog = forms.ChoiceField(choices=_catalogs)
    id = forms.CharField(
        label="Item ID",
        max_length=200,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "placeholder": "P001"}),
    )
    refresh = forms.BooleanField(required=False, label="Ask again, do not use the cached answer")


class FaultForm(forms.Form):
    """One fault for one simulated catalog."""

    catalog = forms.ChoiceField(choices=[(name, name) for name in CATALOGS], widget=forms.HiddenInput)
    fault = forms.ChoiceField(choices=[(name, fault.label) for name, fault in FAULTS.items()])
