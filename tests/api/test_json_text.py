"""JSON as it is sent, and as services send it: bytes that are not UTF-8, and escapes that stand for no character."""

from __future__ import annotations

import codecs
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.api.json_text import encoded, value_of, without_bytes
from svcctl.errors import UsageError

# What the errors say, each once; the tests state their kind.
WORDS = {
    "bytes": "a role contains bytes that are not UTF-8",
    "a number": "a role contains NaN or an infinite number, which JSON cannot express",
}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"name": "caf\udce9"}, "bytes"),
        ({"caf\ud800": 1}, "bytes"),
        ({"time": float("nan")}, "a number"),
        ({"a": [{"b": float("-inf")}]}, "a number"),
    ],
)
def test_a_value_outside_json_is_not_sent(fields: dict[str, Any], kind: str) -> None:
    with pytest.raises(UsageError) as caught:
        encoded(fields, "a role")
    assert caught.value.message == WORDS[kind]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'"caf\xe9"', "caf\udce9"),
        (rb'"caf\udce9"', "caf\udc00"),
        (rb'"caf\uDCe9"', "caf\udc00"),
        (b'"\\udce9\xe9"', "\udc00\udce9"),
        (rb'"\ud83d\udce9"', "\U0001f4e9"),
        (rb'"\ud83d\ud83d\udce9"', "\ud83d\U0001f4e9"),
        (rb'"\\udce9"', r"\udce9"),
        (rb'"\\\udce9"', "\\\udc00"),
        (rb'"\ud800"', "\ud800"),
        (codecs.BOM_UTF8 + b"[1]", [1]),
        ('"é"'.encode("utf-16"), "é"),
    ],
)
def test_a_byte_differs_from_an_escape_that_stands_for_no_character(body: bytes, value: Any) -> None:
    assert value_of(body) == value


@given(st.text(st.characters(codec=None, categories=None)))
def test_only_halves_that_stand_for_bytes_are_changed(text: str) -> None:
    written = json.dumps(text)
    read = json.loads(without_bytes(written))
    assert len(without_bytes(written)) == len(written)
    assert read == "".join("\udc00" if "\udc80" <= one <= "\udcff" else one for one in json.loads(written))
