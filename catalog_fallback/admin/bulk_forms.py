"""What does a person fill in to stop or release a long list? The form, which reads the list."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog_fallback import clock, conf
from catalog_fallback.admin import id_lists
from catalog_fallback.admin.id_lists import IDList, UnreadableList
from catalog_fallback.admin.plans import Plan
from catalog_fallback.models import StopReason


def catalog_choices() -> list[tuple[str, str]]:
    """Return the catalogs of the settings, as they are when a form is shown."""
    return [(alias, alias) for alias in conf.catalogs()]


class BulkForm(forms.Form):
    """Verb, catalog, reason and note, and the list: pasted or uploaded. Valid, ``listed`` holds what was read."""

    verb = forms.ChoiceField(
        label=gettext_lazy("What shall happen"),
        choices=[("stop", gettext_lazy("Stop")), ("release", gettext_lazy("Release"))],
        initial="stop",
        widget=forms.RadioSelect,
    )
    catalog = forms.ChoiceField(label=gettext_lazy("Catalog"), choices=catalog_choices)
    reason = forms.ChoiceField(
        label=gettext_lazy("Reason"),
        choices=StopReason.choices,
        initial=StopReason.WITHDRAWN,
        help_text=gettext_lazy("Of a stop. A release keeps the reason that is there."),
    )
    note = forms.CharField(
        label=gettext_lazy("Note"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
        help_text=gettext_lazy("Why, for your colleagues. Left empty, the notes stay as they are."),
    )
    pasted = forms.CharField(
        label=gettext_lazy("Item IDs"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 10, "class": "vLargeTextField", "spellcheck": "false"}),
        help_text=gettext_lazy("One a line, in any spelling that the catalog takes. Blank lines are skipped."),
    )
    uploaded = forms.FileField(
        label=gettext_lazy("Or a file"),
        required=False,
        help_text=gettext_lazy("Text in UTF-8, one ID a line."),
    )

    listed: IDList

    def clean(self) -> dict[str, Any]:
        """Read the list once the fields by themselves are right."""
        values: dict[str, Any] = self.cleaned_data
        if self.errors:
            return values
        uploaded = values["uploaded"]
        if bool(values["pasted"].strip()) == bool(uploaded):
            both = _("Paste the IDs or upload a file, not both.")
            self.add_error("pasted", both if uploaded else _("Paste the IDs, or upload a file."))
            return values
        try:
            text = self._text_of(uploaded) if uploaded else values["pasted"]
            self.listed = id_lists.read(text, conf.catalog(values["catalog"]))
        except UnreadableList as error:
            self.add_error("uploaded" if uploaded else "pasted", str(error))
        return values

    def plan(self) -> Plan:
        """Return what is to be done; without IDs when no line holds one."""
        values = self.cleaned_data
        is_stop = values["verb"] == "stop"
        item_ids = tuple(sorted(self.listed.numbers))  # neighbours are alike, so that the plan becomes short
        reason = values["reason"] if is_stop else ""
        # Whoever releases has seen the stops until now: one that is made before the confirmation stays.
        started_at = None if is_stop else clock.wall()
        return Plan(is_stop, values["catalog"], reason, values["note"], item_ids, len(item_ids), started_at=started_at)

    @staticmethod
    def _text_of(uploaded: Any) -> str:
        """One byte more than is allowed says that it is too long; the rest need not be in memory."""
        return id_lists.decode(uploaded.read(id_lists.MAX_BYTES + 1))
