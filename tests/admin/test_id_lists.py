"""What is read from a pasted or uploaded list? Hostile ones too."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback.admin import id_lists
from catalog_fallback.admin.id_lists import IDList, Repetition, UnreadableList
from catalog_fallback.configuration import CatalogConfig, SourceConfig
from catalog_fallback.exceptions import InvalidItemID
from tests.admin.conftest import capitals

CATALOG = CatalogConfig("default", (SourceConfig("only"),), normalize_id=capitals)


def read(text: str) -> IDList:
    """What the lines hold for a catalog that writes its IDs in capitals."""
    return id_lists.read(text, CATALOG)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        pytest.param("P001\nP002\n", {"P001": 1, "P002": 2}, id="lines"),
        pytest.param("P001\r\nP002\r\n", {"P001": 1, "P002": 2}, id="windows"),
        pytest.param("P001\rP002", {"P001": 1, "P002": 2}, id="old-mac"),
        pytest.param("\n  \t\nP001\n\n\u3000\nP002", {"P001": 3, "P002": 6}, id="blank-lines"),
        pytest.param("\ufeffP001", {"P001": 1}, id="bom"),
        pytest.param("  p 001\t", {"P001": 1}, id="normal-form"),
        pytest.param("", {}, id="nothing"),
        pytest.param("P001\n", {"P001": 1}, id="one"),
    ],
)
def test_lines_hold_ids(text: str, numbers: dict[str, int]) -> None:
    """Each ID once, in its normal form, with the number of its line as an editor shows it."""
    listed = read(text)
    assert (listed.numbers, listed.invalid, listed.repetitions) == (numbers, [], [])


def test_repetitions_are_folded_and_shown() -> None:
    """Another spelling of an ID is the same ID."""
    listed = read("P001\nP002\np001\n\nP 001\n")
    assert listed.numbers == {"P001": 1, "P002": 2}
    assert listed.repetitions == [Repetition(3, "P001", 1), Repetition(5, "P001", 1)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param("no/good", "'NO/GOOD' is no item ID of catalog 'default': it has to match", id="pattern"),
        pytest.param("P001,P002", "has to match '[A-Z0-9-]{1,32}'", id="comma"),
        pytest.param("P001\x0bP002", "has to match", id="vertical-tab"),
        pytest.param("P001\u2028P002", "has to match", id="line-separator"),
        pytest.param("P001\ufffd", "has to match", id="replacement"),
        pytest.param("..", "is no item ID", id="dots"),
        pytest.param("X" * 5000, "is no item ID", id="long"),
    ],
)
def test_what_is_no_id_is_named_with_line_and_reason(line: str, reason: str) -> None:
    """The others are read all the same; what is shown of the line is bounded."""
    listed = read(f"P001\n{line}\nP002")
    assert listed.numbers == {"P001": 1, "P002": 3}
    [invalid] = listed.invalid
    assert invalid.number == 2
    assert reason in invalid.reason
    assert len(invalid.text) <= 81
    assert len(invalid.reason) < 250


def test_what_the_stop_list_cannot_keep_is_invalid() -> None:
    """A catalog may take longer IDs, and others, than a column of an index."""
    loose = CatalogConfig("loose", (SourceConfig("only"),), id_pattern=re.compile(".+"))
    listed = id_lists.read(f"{'x' * 255}\n{'y' * 256}\nP\x001", loose)
    assert listed.numbers == {"x" * 255: 1}
    assert [(line.number, line.reason) for line in listed.invalid] == [
        (2, "256 characters are too many for the stop list; 255 is the limit."),
        (3, "It holds a NUL character."),
    ]


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        pytest.param("P001\nKäse".encode("latin-1"), "byte 6 is 0xE4", id="latin-1"),
        pytest.param("P001".encode("utf-16"), "byte 0 is 0xFF", id="utf-16-bom"),
        pytest.param("P001".encode("utf-16-le"), "byte 1 is 0x00 (UTF-16?)", id="utf-16-without-bom"),
        pytest.param(b"\xef\xbb\xbfP001\n\xc3", "byte 8 is 0xC3", id="cut-after-bom"),
        pytest.param(b"P\xed\xa0\x80", "byte 1 is 0xED", id="surrogate"),
        pytest.param(b"\x1f\x8b\x08\x00", "byte 1 is 0x8B", id="gzip"),
        pytest.param(b"P001\x00", "byte 4 is 0x00", id="nul"),
    ],
)
def test_a_file_in_another_encoding_is_refused(raw: bytes, complaint: str) -> None:
    """With the offset of the first byte that is wrong, so that it can be found."""
    with pytest.raises(UnreadableList) as caught:
        id_lists.decode(raw)
    assert complaint in str(caught.value)
    assert "UTF-8" in str(caught.value)


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["without-bom", "with-bom"])
def test_utf_8_is_read_with_and_without_bom(bom: bytes) -> None:
    """As Windows programs write it, too."""
    assert read(id_lists.decode(bom + b"P001\r\nP002")).numbers == {"P001": 1, "P002": 2}


def test_too_many_lines_are_refused() -> None:
    """The limit itself is taken; the message says how many there are, and what to do."""
    limit = id_lists.MAX_LINES
    assert read("\n".join(["P001"] * limit) + "\n").numbers == {"P001": 1}
    with pytest.raises(UnreadableList, match=rf"^{limit + 1} lines are too many; {limit} .*invalidate_item"):
        read("\n".join(["P001"] * (limit + 1)))


def test_too_many_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file and of a text; bytes are counted, not characters."""
    monkeypatch.setattr(id_lists, "MAX_BYTES", 8)
    assert id_lists.decode(b"12345678") == "12345678"
    for refused in (lambda: id_lists.decode(b"123456789"), lambda: read("ääää\n")):
        with pytest.raises(UnreadableList, match="9 bytes are too many; 8 is the limit"):
            refused()


@given(st.binary(max_size=300))
def test_any_bytes_are_text_or_refused_at_a_byte(raw: bytes) -> None:
    """Nothing else is raised, and nothing is silently repaired."""
    try:
        raw.decode()
        is_text = b"\x00" not in raw
    except UnicodeDecodeError:
        is_text = False
    if is_text:
        assert id_lists.decode(raw).encode() == raw
    else:
        with pytest.raises(UnreadableList, match=r"byte [0-9]+ is 0x[0-9A-F]{2}"):
            id_lists.decode(raw)


@given(st.text(max_size=200), st.lists(st.sampled_from(["P001", " p001 ", "P002", "no good!", ""]), max_size=8))
def test_every_line_is_accounted_for(junk: str, lines: list[str]) -> None:
    """Each line that is not blank is an ID, a repetition or invalid; IDs are those that the catalog takes."""
    text = "\n".join([*lines, junk])
    listed = read(text)
    numbers = [*listed.numbers.values(), *(each.number for each in (*listed.repetitions, *listed.invalid))]
    written = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert sorted(numbers) == [number for number, line in enumerate(written, 1) if line.strip()]
    for item_id, number in listed.numbers.items():
        assert CATALOG.clean_id(written[number - 1].strip()) == item_id
    for each in listed.repetitions:
        assert each.first == listed.numbers[each.item_id] < each.number
    for line in listed.invalid:
        with pytest.raises(InvalidItemID):
            CATALOG.clean_id(written[line.number - 1].strip())
