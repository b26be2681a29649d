"""Texts that would not fit into memory are refused before the query runs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from support.engines import rows_of_engines

from svcctl.service.language import Plan, QueryError
from svcctl.service.language.text_bound import MAX_TEXT_CHARS, STORED_CHARS

Run = Callable[..., list[tuple[Any, ...]]]
Compiled = Callable[..., Plan]

TEN = "a" * 10
ESCAPED = 'replaceall(replaceall(replaceall(replaceall(user, "&", "&amp;"), "<", "&lt;"), ">", "&gt;"), "\'", "&apos;")'


def nested(text: str, times: int, old: str = '"a"', new: str = f'"{TEN}"') -> str:
    for _ in range(times):
        text = f"replaceall({text}, {old}, {new})"
    return text


def doubled(steps: int) -> str:
    """A query whose text doubles in each step."""
    names = [f"t{step}" for step in range(steps + 1)]
    clauses = [f"select {one} + {one} as {two}" for one, two in pairwise(names)]
    return f'select "{"a" * 1000}" as t0 ' + " ".join(clauses)


EMPTY = '""'
QUOTED_TEN = f'"{TEN}"'
GROWN = nested(QUOTED_TEN, 6)
THREE_TIMES = nested("user", 3)
FOUR_TIMES = nested("user", 4)
ROW = ", ".join(f"{THREE_TIMES} as x{number}" for number in range(20))
SPECIAL = " !#$&+,/:;=?@[]"
ENCODED = "replaceall(" * len(SPECIAL) + "user" + "".join(f', "{one}", "%{ord(one):02X}")' for one in SPECIAL)

TOO_LONG = {
    "a constant that is replaced by itself": f"select {nested(QUOTED_TEN, 38)} as x",
    "a constant in a condition": f"where {GROWN} = 'b'",
    "a constant in a search": f"where has(user, {GROWN})",
    "a constant in a key": f"group by {GROWN} as x select count() as n",
    "a constant in an aggregate": f"group select max({GROWN}) as x",
    "a column": f"select {nested('user', 5)} as x",
    "a column that is searched for": f"select {nested('user', 5, old='user')} as x",
    "a column in a column": f"select {nested('user', 3, new='user')} as x",
    "a search that is computed": f"select {nested('user', 5, old='lower(user)')} as x",
    "letters in another case": f"select {nested('lower(' + nested('user', 2) + ')', 3)} as x",
    "numbers as text": f"select {nested('str(status)', 5)} as x",
    "a choice": f"select {nested('ifthenelse(ok, user, str(ip))', 5)} as x",
    "joined texts": "select " + " + ".join([THREE_TIMES] * 20) + " as x",
    "sums of sums, step by step": doubled(11),
    "a replacement over several selects": f"select {THREE_TIMES} as x select {nested('x', 3)} as y",
    "an aggregate of long texts": f"group select {nested('max(' + THREE_TIMES + ')', 3)} as x",
    "a row of many texts": f"select {ROW}",
}
SHORT = {
    "no growth": f"select {nested('user', 38, old=QUOTED_TEN, new=QUOTED_TEN)} as x",
    "an empty search": f"select {nested('user', 38, old=EMPTY)} as x",
    "a search that does not occur in the constant": f"select {nested(EMPTY, 38, old=QUOTED_TEN)} as x",
    "escapes": f"select {ESCAPED} as x",
    "encoded characters": f"select {ENCODED} as x",
    "columns in columns": 'select replaceall(replaceall(user, "a", str(ip)), "b", str(status)) as x',
    "a mask": 'select replaceall(replaceall(user, str(ip), "***"), str(status), "***") as x',
    "a long search": f'select replaceall(user, "{TEN * 10}", "{TEN * 100}") as x',
    "a long constant": f'select "{"é" * 100_000}" as x',
    "twenty joined columns": "select " + " + ".join(["user"] * 20) + " as x",
    "steps of sums": doubled(8),
}


@pytest.mark.parametrize("clauses", TOO_LONG.values(), ids=TOO_LONG)
def test_a_text_that_can_become_too_long_is_refused(clauses: str, compiled: Compiled) -> None:
    with pytest.raises(QueryError) as refusal:
        compiled(f"from web.data {clauses}")
    assert f"{MAX_TEXT_CHARS:,}" in str(refusal.value)
    assert refusal.value.column > 1


@pytest.mark.parametrize("clauses", SHORT.values(), ids=SHORT)
def test_usual_replacements_and_sums_are_run(clauses: str, compiled: Compiled) -> None:
    compiled(f"from web.data {clauses}")


@pytest.mark.parametrize("engine", rows_of_engines("lake"), indirect=True)
def test_an_engine_makes_no_longer_text_than_its_bound(run: Run) -> None:
    longest = f'replaceall("{"a" * 100}", "a", "{"a" * 9_999}")'
    assert run(f"from web.data select length({longest}) as n limit 1") == [(999_900,)]
    assert run('from web.data select replaceall("abc", "", "xy") as x limit 1') == [("abc",)]


def test_a_stored_text_counts_as_usual_texts_are_long(compiled: Compiled) -> None:
    room = MAX_TEXT_CHARS // STORED_CHARS - 1
    compiled(f'from web.data select replaceall(user, "a", "{"b" * room}") as x')
    with pytest.raises(QueryError):
        compiled(f'from web.data select replaceall(user, "a", "{"b" * (room + 1)}") as x')
