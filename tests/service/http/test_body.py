"""The object in a body: what passes, and what a refusal says of the member that does not."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.errors import ServiceError
from svcctl.io.json_members import optional_text, text
from svcctl.service.http.body import MAX_DEPTH, json_object

HALF = "contains half of a surrogate pair, which is not a character"
DEEP = "the body is nested deeper than 16 levels"


def refusal(body: bytes | str) -> str:
    with pytest.raises(ServiceError) as caught:
        json_object(body.encode() if isinstance(body, str) else body)
    assert caught.value.code is None
    assert caught.value.message.encode().decode() == caught.value.message
    return caught.value.message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON"),
        (b"\xff", "the body is not JSON"),
        (b"{'a': 1}", "the body is not JSON"),
        (b"null", "the body is not a JSON object"),
        (b'"text"', "the body is not a JSON object"),
        (rb'{"a":"\ud800"}', f"a {HALF}"),
        (b'{"a":"\xed\xa0\x80"}', f"a {HALF}"),
        (rb'{"a":{"b":["x",{"c":"\udfff"}]}}', f"a.b.c {HALF}"),
        (rb'{"\ud800":1}', rf"the name of \ud800 {HALF}"),
        (rb'{"a":"x\u0000y"}', "a contains the character U+0000"),
        (rb'{"\u0000":1}', r"the name of \u0000 contains the character U+0000"),
        (b'{"a":NaN}', "the body is not JSON: NaN is not a number"),
        (b'{"a":-Infinity}', "the body is not JSON: -Infinity is not a number"),
        (b'{"a":1e999}', "a is a number that is too large"),
        (b'{"a":[9223372036854775808]}', "a is a number that is too large: 9223372036854775808"),
        (b'{"a":1,"b":{"c":1,"c":2}}', "the body has the member c more than once"),
        (rb'{"\ud800":1,"\ud800":2}', r"the body has the member \ud800 more than once"),
        (b'{"a":' * 17 + b"1" + b"}" * 17, DEEP),
        (b'{"a":' + b"[" * 500_000 + b"]" * 500_000 + b"}", DEEP),
    ],
)
def test_what_no_route_could_use_is_refused_with_the_member_named(body: bytes, message: str) -> None:
    assert refusal(body) == message


def test_numbers_of_many_digits_are_refused_by_name_and_shown_in_part() -> None:
    assert refusal('{"limit":' + "9" * 100_000 + "}").startswith("limit is a number that is too large: 9999")


def test_a_refusal_is_short_however_long_a_name_is() -> None:
    assert len(refusal('{"' + "n" * 100_000 + '":"\\ud800"}')) < 200


def test_the_largest_bodies_are_checked_in_no_time() -> None:
    names = ",".join(f'"{number}":0' for number in range(80_000))
    started = time.process_time()
    assert refusal("{" + names + ',"79999":1}') == "the body has the member 79999 more than once"
    assert time.process_time() - started < 2


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abé😀", max_size=5), inner, max_size=4),
    max_leaves=MAX_DEPTH - 2,
)  # fmt: skip


@given(fields=st.dictionaries(st.text("abc", max_size=5), VALUES))
def test_everything_else_passes_unchanged_but_for_members_that_are_null(fields: dict[str, Any]) -> None:
    assert json_object(json.dumps(fields).encode()) == without_null(fields)


def without_null(value: Any) -> Any:
    if isinstance(value, list):
        return [without_null(element) for element in value]
    if isinstance(value, dict):
        return {name: without_null(member) for name, member in value.items() if member is not None}
    return value


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))  # two halves may be a character
def test_half_characters_are_refused_wherever_they_are_and_the_refusal_can_be_sent(text: str) -> None:
    body = json.dumps({"a": [f"{text}\ud800"]})
    assert refusal(body) == ("a contains the character U+0000" if "\0" in text else f"a {HALF}")
    assert refusal(json.dumps({f"\ud800{text}": 1})).startswith(r"the name of \ud800")


def test_a_member_of_text_is_named_when_it_is_missing_or_something_else() -> None:
    assert (text({"path": "a"}, "path"), optional_text({}, "format")) == ("a", None)
    for fields, message in (({}, "path is missing"), ({"path": 1}, "path is not a string")):
        with pytest.raises(ServiceError, match=f"^{message}$"):
            text(fields, "path")
    with pytest.raises(ServiceError, match=r"^format is not a string$"):
        optional_text({"format": ["csv"]}, "format")
