"""SQL that people type is answered with the whole query in the language, a function of SQL with the one to write."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.api.foreign_functions import function_answer
from svcctl.service.language import FUNCTIONS, Plan, QueryError, Table, parse
from svcctl.service.language.habits import blank_out
from svcctl.service.language.translation import Untranslatable, query_from_sql
from svcctl.service.loading.demo import TABLES

CATALOG = {name: Table(name, columns) for name, columns in TABLES.items()}
LINES = Path(__file__).with_name("sql.txt").read_text(encoding="utf-8").splitlines()
"""Queries, and behind each its answer."""


@pytest.mark.parametrize(("sql", "expected"), list(zip(LINES[::2], map(str.strip, LINES[1::2]), strict=True)))
def test_sql_is_answered_with_a_whole_query_that_compiles(
    sql: str, expected: str, compiled: Callable[..., Plan]
) -> None:
    if not expected.startswith("write from "):
        with pytest.raises(Untranslatable, match=f"^{re.escape(expected)}$"):
            query_from_sql(sql)
        return
    found = query_from_sql(sql)
    options = "".join(f" --{name} {value}" for name, value in found.sorting.items())
    assert f"write {found.query}{found.remark}{options and f':{options}'}" == expected
    assert compiled(found.query, catalog=CATALOG).columns


@pytest.mark.parametrize(
    ("sql", "column", "hint"),
    [
        ("FROM t where a LIKE 'x%'", 1, 'write from t where a ~ nameglob("x*")'),
        ("from t where a like '%a%b%'", 16, 'write from t where a ~ nameglob("*a*b*")'),
        ("from t where (a in (1) or b == 2) && c;", 20, "write from t where (a in {1} or b = 2) and c"),
        ("from t where !a -- a comment", 14, "write from t where not a"),
        ("from t # all", 8, "write from t"),
        ("from t select distinct a, b", 24, "write from t group by a, b"),
        (
            "from t group by b having c > 1",
            19,
            "a where after the select filters groups, as in group by … select count() as n where n > 1",
        ),
        ("from t order by n desc", 8, "write from t and sort the rows that it returns"),
        ("from t where a.b = 'x' && d", 24, 'write from t where a.b = "x" and d'),
        ("select x.req.hdr.host.a, x.b from t x", 37, "write from t select req.hdr.host.a, b"),
        ("from t select a, b where c is true", 28, "write from t select a, b where c = true"),
        ("SELECT CASE a WHEN 1 THEN 'x' END FROM t", 1, 'write from t select ifthenelse(a = 1, "x", null)'),
        ("SELECT a->>'$.b[0]' FROM t", 1, 'write from t select jsonparse(a, "b[0]")'),
        ("SELECT json_value(a, '$.\"x y\".z') FROM t", 1, r"""write from t select jsonparse(a, "[\"x y\"].z")"""),
        (
            "from t where a ->> 'x' = 5 and (b ->> 'x') and not c -> 'y'",
            24,
            'write from t where jsonparse(a, "x") = 5 and (b ->> "x") and not c -> "y"',
        ),
        ("SELECT concat_ws(',', a) FROM t", 1, "strings are joined by +"),
    ],
)
def test_parts_of_sql_are_answered_at_the_place_of_the_error(sql: str, column: int, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(sql)
    assert (caught.value.line, caught.value.column, caught.value.hint) == (1, column, hint)


@pytest.mark.parametrize(
    "sql",
    [
        "from t x",
        "from t where a > 2s",
        "from t where a, limit > 3",
        "from t select a, b select",
        'from t where a = "order by; == # {{c}} |" foo',
    ],
)
def test_what_is_no_sql_is_not_translated(sql: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(sql)
    assert caught.value.expected != ()


@given(st.text(alphabet=" '`()*,.;%|=<>19abt", max_size=30), st.sampled_from(["select ", "from t where ", "from "]))
def test_any_text_is_translated_or_not(text: str, begin: str) -> None:
    with suppress(Untranslatable):
        assert query_from_sql(begin + text).query


@pytest.mark.parametrize("part", ["(", "[(", "case when ", "not ", "f(", "select (", "a and ", "'", '"\\', "//"])
def test_a_hostile_text_costs_little(part: str) -> None:
    began = time.process_time()
    with suppress(Untranslatable):
        query_from_sql(f"select {part * (3900 // len(part))}")
    assert len(blank_out(part * 100_000)) == len(part) * 100_000
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("contains", 'write text -> "part"'),
        ("Concat", "strings are joined by +"),
        ("countIf", "write sum(int(x))"),
        ("count_if", "write sum(int(x))"),
        ("p95", "write percentile(…, 95)"),
        ("CONVERT_TZ", 'write formatdate(eventdate, "yyyy-MM-dd HH:mm", "Europe/Berlin")'),
        ("toStartOfDay", 'write group every 1d, or formatdate(x, "yyyy-MM-dd")'),
        ("toNumber", "write float8(x)"),
        ("get_json_object", 'write jsonparse(text, "a.b[0]"), which reads a member of JSON text'),
        ("JSONExtractString", 'write jsonparse(text, "a.b[0]"), which reads a member of JSON text'),
        ("nosuch", None),
    ],
)
def test_a_function_of_another_language_is_answered_with_the_one_to_write(name: str, expected: str | None) -> None:
    assert function_answer(name, "x") == expected


def test_no_function_of_the_language_is_taken_for_one_of_another() -> None:
    assert [name for name in FUNCTIONS if function_answer(name) is not None] == []
