"""What can be asked? A catalog and an ID; which fault a simulated catalog should have."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from catalog_fallback import conf
from catalog_fallback.exceptions import InvalidItemID
from catalogs.replies import CATALOGS
from portal.fault_words import GROUPS


def catalog_names() -> list[tuple[str, str | Promise]]:
    """The site's catalogs: alias and what people call it."""
    names = getattr(settings, "CATALOG_NAMES", {})
    return [(alias, names.get(alias, alias)) for alias in settings.CATALOG_FALLBACK]


class ItemForm(forms.Form):
    """One item of one catalog; ``id`` is cleaned to the normal form."""

    catalog = forms.ChoiceField(label=_("Catalog"), choices=catalog_names)
    id = forms.CharField(
        label=_("Item ID"),
        max_length=200,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "list": "suggestions"}),
    )

    def clean(self) -> None:
        """Refuse what cannot be an ID of the catalog."""
        catalog, item_id = self.cleaned_data.get("catalog"), self.cleaned_data.get("id")
        if catalog and item_id:
            try:
                self.cleaned_data["id"] = conf.catalog(catalog).clean_id(item_id)
            except InvalidItemID:
                self.add_error("id", _("This cannot be an ID of that catalog."))


class LookUpForm(ItemForm):
    """A question."""

    refresh = forms.BooleanField(required=False, label=_("Ask again, do not use the kept answer"))


class FaultForm(forms.Form):
    """One fault for one simulated catalog."""

    source = forms.ChoiceField(choices=[(name, name) for name in CATALOGS], widget=forms.HiddenInput)
    fault = forms.ChoiceField(
        label=_("Fault"),
        choices=[(group, [(name, words.label) for name, words in faults.items()]) for group, faults in GROUPS],
    )
