"""The record: written and read back the same, and never taken for that of another export."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.dates.zones import named_zone
from svcctl.errors import UsageError
from svcctl.exports.identity import Identity
from svcctl.exports.record import ExportedFile, Record
from svcctl.exports.windows import Target
from svcctl.storage.local import LocalStorage

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a damaged record": "the record .m.csv.export/record.json is damaged",
    "a newer record": "the record .m.csv.export/record.json was written by a newer svcctl (version 2)",
}
HINTS = {
    "a damaged record": "start over: the same command with --force",
}

STORAGE, TARGET = LocalStorage(), Target("m.csv")
IDENTITY = Identity("from auth.all", "csv", 3600, "https://events.example.com", time_zone=named_zone("GMT+2"))
TEN = ExportedFile(36_000, 39_600, "a.csv", 2, 31, "00" * 32, 1_700_000_000)
ELEVEN = ExportedFile(39_600, 43_200, "", 0, 0, "", 1_700_000_001)


def record(*entries: ExportedFile, identity: Identity = IDENTITY, head: str | None = None, **given: Any) -> Record:
    return Record(STORAGE, TARGET, identity, head, {entry.window: entry for entry in entries}, **given)


ENTRIES = st.lists(
    st.builds(
        ExportedFile,
        st.integers(0, 10**10),
        st.integers(0, 10**10),
        st.text(),
        st.integers(0, 10**12),
        st.integers(0, 10**15),
        st.text("0123456789abcdef"),
        st.integers(0, 10**10),
        st.none() | st.integers(0, 10**15),
    ),
    max_size=5,
)


@given(entries=ENTRIES, query=st.text(), head=st.none() | st.text(), merged=ENTRIES)
def test_a_record_reads_back_as_it_was(
    entries: list[ExportedFile], query: str, head: str | None, merged: list[ExportedFile]
) -> None:
    written = record(*entries, identity=replace(IDENTITY, query=query), head=head, merged=tuple(merged))
    assert Record.from_text(written.to_text(), STORAGE, TARGET) == written


def test_an_entry_is_a_line() -> None:
    text = record(ELEVEN, replace(TEN, offset=4), head="a,b").to_text()
    assert text.split("\n")[4:] == [
        '{"start": 36000, "end": 39600, "path": "a.csv", "rows": 2, "bytes": 31, '
        f'"sha256": "{"00" * 32}", "when": 1700000000, "offset": 4}},',
        '{"start": 39600, "end": 43200, "path": "", "rows": 0, "bytes": 0, "sha256": "", "when": 1700000001}',
        "]}",
        "",
    ]


@pytest.mark.parametrize(
    "changed",
    [
        replace(IDENTITY, query="from auth.all "),
        replace(IDENTITY, format="tsv"),
        replace(IDENTITY, window=60),
        replace(IDENTITY, service="https://other.example.com"),
        replace(IDENTITY, time_zone=None),
        replace(IDENTITY, time_zone=named_zone("UTC")),
        replace(IDENTITY, window_zone=named_zone("GMT+2")),
        replace(IDENTITY, date_format="iso"),
    ],
)
def test_whatever_decides_the_bytes_decides_the_key(changed: Identity) -> None:
    assert changed.key != IDENTITY.key
    assert len(changed.key) == 64


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({}, "98617accdcded87174616c1d7fdeade8927d7aafb9e03a34e50af85952799048"),
        ({"time_zone": "GMT+2"}, "fa2df33b3989938942765b5e7063171dad963f44031b2966624bca8d8826d850"),
        (
            {"date_format": "iso", "time_zone": "Europe/Berlin", "clock": "Europe/Berlin"},
            "bd6bbff9e1c0ae3a8574d2761bd3eb2b56b5f627e058834e6b211be46d826a15",
        ),
    ],
)
def test_a_record_names_zones_and_its_key_stays(options: dict[str, str], key: str) -> None:
    members = {"query": "from auth.all", "format": "csv", "window": 3600, "service": "https://events.example.com"}
    identity = Identity.from_json(**members, options=options)  # type: ignore[arg-type]
    assert identity.to_json() == {**members, "options": options}
    assert identity.key == key


DOCUMENT = json.loads(record(TEN).to_text())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        record(TEN).to_text()[:-9],
        json.dumps(DOCUMENT | {"windows": []}),
        json.dumps({name: value for name, value in DOCUMENT.items() if name != "version"}),
    ],
)
def test_a_damaged_record_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Record.from_text(text, STORAGE, TARGET)
    assert caught.value.message == WORDS["a damaged record"]
    assert caught.value.hint == HINTS["a damaged record"]


def test_no_changed_digit_goes_unnoticed() -> None:
    text = record(TEN, ELEVEN, ranges=((36_000, 43_200),)).to_text()
    for at in (at for at, character in enumerate(text) if character.isdigit()):
        with pytest.raises(UsageError) as caught:
            Record.from_text(f"{text[:at]}{(int(text[at]) + 1) % 10}{text[at + 1 :]}", STORAGE, TARGET)
        assert caught.value.message.startswith("the record .m.csv.export/record.json ")


def test_a_newer_record_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        Record.from_text(json.dumps(DOCUMENT | {"version": 2}), STORAGE, TARGET)
    assert caught.value.message == WORDS["a newer record"]
