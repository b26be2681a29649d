"""Queries written by someone who means harm: no text of theirs becomes SQL, and none costs more than it should."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from traceback import walk_stack
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.engines import rows_of_engines

from svcctl.service.language import Column, Plan, QueryError, Table, Type
from svcctl.service.language.printer import string_text as quoted

Run = Callable[..., list[tuple[Any, ...]]]
Compiled = Callable[..., Plan]

NOT_ON_SPARK = pytest.mark.parametrize("engine", rows_of_engines("lake")[:-1], indirect=True)
"""Such queries take it seconds each, and Sail reads the same SQL."""
TEXTS = [
    "'; DROP TABLE x; --",
    '" OR 1=1 --',
    "\\",
    "\\'",
    "a\\' OR 1=1 --",
    "/* */ -- //",
    "$$ $a$ $1 ? :a {{b}} %s %",
    "x'41' E'\\n' U&'\\0041'",
    "\n\r\t\x01\x1b\x7f\x85\u2028\ufeff",
    "é 😀 \u202e ' \u02bc ＇",
    "`",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_string_comes_out_of_the_engine_as_it_was_written(text: str, run: Run) -> None:
    literal = quoted(text)
    query = f"from web.data select {literal} as a, length({literal} + {literal}) as n limit 1"
    assert run(query) == [(text, 2 * len(text))]
    query = f"from web.data where not has({literal} + user, {literal}) or not {literal} in {{{literal}}} select user"
    assert run(query) == []
    assert run(f"from web.data where toktains({literal}, {quoted('q' + text)}) select ok") == []
    assert run(f"from web.data where not matches({literal}, nameglob({literal})) select ok") == []
    assert run(f"from web.data select replaceall({literal}, {quoted(text + 'x')}, {literal}) as x limit 1") == [(text,)]
    assert run(f"from web.data select decode({literal}, {literal}, {literal}) as x limit 1") == [(text,)]


@pytest.mark.parametrize("text", [text for text in TEXTS if text and not set("\n\r") & set(text)])
def test_a_name_is_a_name_whatever_it_holds(text: str, compiled: Compiled) -> None:
    database = duckdb.connect(config={"threads": 1})
    column = text + "x"
    sql_name, name = ('"' + part.replace('"', '""') + '"' for part in (column, text))
    database.execute(f"CREATE TABLE {name} AS SELECT TIMESTAMP '2024-01-01 00:00:00' eventdate, 1 {sql_name}")
    table = Table(text, (Column("eventdate", Type.TIMESTAMP), Column(column, Type.INT4)), ordered=True)
    ours, theirs = ("`" + part.replace("`", "``") + "`" for part in (text + "y", column))
    plan = compiled(
        f"from `{text.replace('`', '``')}` where {theirs} = 1 select {theirs} as {ours}", catalog={text: table}
    )
    result = database.execute(plan.select.sql("duckdb"))
    assert (result.description[0][0], result.fetchall()) == (text + "y", [(1,)])
    with pytest.raises(QueryError):
        compiled(f"from `{text.replace('`', '``')}` select {ours}", catalog={text: table})


TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=12)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXT, min_size=1, max_size=30).map(tuple))
def test_any_string_survives_the_way_to_the_engine_and_back(texts: tuple[str, ...], run: Run) -> None:
    columns = ", ".join(f"{quoted(text)} as x{number}" for number, text in enumerate(texts))
    assert run(f"from web.data select {columns} limit 1") == [texts]


def _nest(form: str, times: int, inner: str) -> str:
    for _ in range(times):
        inner = form.replace("@", inner)
    return inner


FORMS = {
    "not @": "ok",
    "-(@)": "bytes",
    "2 % (@)": "bytes",
    "2 / (@)": "seconds",
    "(@ + 1) * 2": "bytes",
    "ok or (@ and ok)": "ok",
    "0 < (@) < 5": "bytes",
    "lower(@)": "user",
    "int8(str(@))": "bytes",
    "ifthenelse(@ in {1, bytes, 3}, 1, 2)": "bytes",
    "ifthenelse(@ in {1, 2, 3}, 1, 2)": "bytes",
    "ifthenelse(@ in {1, 2, 3, 4, 5, 6}, 1, 2)": "bytes",
    "ifthenelse(1 < @ < 3, 1, 2)": "bytes",
    'str(startswith(@, "a"))': "user",
    'str(endswith(@, "a"))': "user",
    "bool(str(@))": "ok",
    "timestamp(year(@))": "eventdate",
    "ifthenelse(ip4(@) <- 10.0.0.0/8, 1, 2)": "bytes",
    'ip4(str(@) + "a")': "ip",
    "decode(@, 1, 2, 3, 4, 5)": "bytes",
    'peek(@, re("a"))': "user",
    'split(@, "a", 0)': "user",
    'str(has(@, "a", "b"))': "user",
    "formatdate(parsedate(@))": "user",
    "round(@, 2)": "seconds",
}


@NOT_ON_SPARK
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("times", [12, 39])
def test_nesting_is_run_or_refused_in_no_time(form: str, times: int, run: Run) -> None:
    condition = "where" if form[:3] in ("not", "ok ") else "select 1 as one, "
    started = time.process_time()
    try:
        rows = run(f"from web.data {condition} {_nest(form, times, FORMS[form])}")
    except QueryError as error:
        rows = [(str(error),)]
    assert time.process_time() - started < 5
    assert len(rows) <= 5


def test_the_deepest_queries_leave_room_on_the_stack(run: Run) -> None:
    steps = " ".join("select x + 1 as x" for _ in range(19))
    query = f"from web.data select {_nest('2 % (@)', 38, 'bytes')} as x {steps} limit 1"
    limit = sys.getrecursionlimit()
    depth = sum(1 for _ in walk_stack(None))
    sys.setrecursionlimit(depth + 700)
    try:
        assert len(run(query)) == 1
    finally:
        sys.setrecursionlimit(limit)


@NOT_ON_SPARK
@pytest.mark.slow
@pytest.mark.parametrize(
    "clauses",
    [
        "where " + " or ".join(["status = 5"] * 1500),
        "where " + ", ".join(["status = 5"] * 1500),
        "where status in {" + ", ".join(map(str, range(1000, 4000))) + "}",
        "where has(user, " + ", ".join(['"zz"'] * 1500) + ")",
        "where not ok " * 1000 + "where status = 5",
        "limit 5 " * 1500 + "where status = 5",
    ],
    ids=["or", "comma", "in", "has", "where", "limit"],
)
def test_long_flat_queries_run(clauses: str, run: Run) -> None:
    assert run(f"from web.data {clauses}") == []


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("select " + " + ".join(["bytes"] * 300), "too long"),
        ("select " + ", ".join(f"ok as c{index}" for index in range(1001)), "more than 1000 columns"),
        ("select ok as x " + "select not x as x " * 30, "more than 20 steps"),
        ("where " + ", ".join(f'user ~ re("{index}")' for index in range(300)), "too complex"),
    ],
)
def test_what_an_engine_could_not_bear_is_refused(clauses: str, message: str, compiled: Compiled) -> None:
    with pytest.raises(QueryError, match=message):
        compiled(f"from web.data {clauses}")
