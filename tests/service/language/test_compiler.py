"""What queries return, run through DuckDB, and which ones are refused for what they mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any

import pytest
from sqlglot import exp

from svcctl.api.query import ALL_COLUMNS, answer
from svcctl.service.language import Column, Plan, QueryError, Table, Type

Run = Callable[..., list[tuple[Any, ...]]]
Compiled = Callable[..., Plan]


def at(minute: int, hour: int = 10) -> datetime:
    return datetime(2024, 1, 1, hour, minute)


FIELD_TABLES = {
    name: Table(name, tuple(Column(*column) for column in columns))
    for name, columns in {
        "demo.ecommerce.data": [
            ("eventdate", Type.TIMESTAMP),
            ("protocol", Type.STR),
            ("statusCode", Type.INT4),
            ("method", Type.STR),
            ("clientIpAddress", Type.IP4),
        ],
        "web.activity": [
            ("eventdate", Type.TIMESTAMP),
            ("domain", Type.STR),
            ("username", Type.STR),
            ("responseTime", Type.INT8),
        ],
        "auth.all": [("eventdate", Type.TIMESTAMP), ("result", Type.STR), ("user", Type.STR)],
        "counter": [("eventdate", Type.TIMESTAMP), ("kind", Type.STR), ("object", Type.STR)],
        "T": [
            ("eventdate", Type.TIMESTAMP),
            ("f1", Type.STR),
            ("f2", Type.STR),
            ("f3", Type.STR),
            ("rawMessage", Type.STR),
            ("user", Type.STR),
            ("status", Type.INT4),
        ],
        "siem.web": [("eventdate", Type.TIMESTAMP), ("message", Type.STR)],
    }.items()
}

FIELD_EXAMPLES = {
    "from demo.ecommerce.data select eventdate, protocol, statusCode, method": "eventdate protocol statusCode method",
    "from demo.ecommerce.data where statusCode = 404 group every 10m by method, clientIpAddress every 10m"
    " select count() as myCount": "eventdate method clientIpAddress myCount",
    "from web.activity group every 30m by domain, username every 30m"
    " select count() as count, max(responseTime) as responseTime": "eventdate domain username count responseTime",
    'from auth.all where result = "FAIL" group by user select count() as n where n > 1': "user n",
    'from counter where kind = "table", object in {"a","b"} group by object'
    " select max(eventdate) as last": "object last",
    'from T where (has(f1,"v1","v2") and not (f2 = "v5")) group by f3 select avg(f2) as agg where agg > 5 select *': (
        "f3 agg"
    ),
    'from T where weakhas(rawMessage, "errorCode") select lower(user) as u,'
    ' ifthenelse(status >= 400, "bad", "good") as verdict group by u, verdict select count() as n': "u verdict n",
    'from siem.web where toktains(message, "8.8.8.8") limit 10 pragma comment.user:"ops"': "eventdate message",
    "from T where false": "eventdate f1 f2 f3 rawMessage user status",
}


@pytest.mark.parametrize(("query", "names"), FIELD_EXAMPLES.items())
def test_the_field_examples_compile_to_their_columns(query: str, names: str, compiled: Compiled) -> None:
    assert [column.name for column in compiled(query, catalog=FIELD_TABLES).columns] == names.split()


RESULTS: dict[str, list[tuple[Any, ...]]] = {
    "select user": [("ann",), ("Bob",), ("cid",), ("ann",), (None,)],
    "select user limit 2": [("ann",), ("Bob",)],
    "limit 3 where user = 'ann' select status": [(200,)],
    "limit 2 offset 1 select user": [("Bob",), ("cid",)],
    "where status = 404, ok select user": [("Bob",)],
    "where status != 404 select status": [(200,), (500,)],
    "where not status = 404 select status": [(200,), (500,)],
    "where status = null select bytes": [(None,)],
    "where user != null and status < 300 select user": [("ann",)],
    "where 200 < status <= 404 select status": [(404,), (404,)],
    "where '200' < status <= '404' select status": [(404,), (404,)],
    "where status in {'500', '200'} select status": [(200,), (500,)],
    "where '9223372036854775807' = bytes select bytes": [(9223372036854775807,)],
    "where seconds >= '2.5' select seconds": [(2.5,), (9.5,)],
    "group by user select count() as n where n = '2'": [("ann", 2)],
    "where user ->> 'B' select user": [("Bob",)],
    "where user -> 'b' select user": [("Bob",)],
    'where user ~ re("^[a-b]") select status': [(200,), (404,)],
    'where user ~ nameglob("?nn") select status': [(200,), (404,)],
    "where ip <- 10.0.0.0/31 select ip = 10.0.0.1": [(True,), (True,)],
    "where ip <- 10.0.0.2 select str(ip)": [("10.0.0.2",)],
    'where `in`("ann", "cid", user) select status': [(200,), (500,), (404,)],
    "where bytes in {10, status - 384} select bytes": [(10,), (20,)],
    "select seconds / 0 as a, 7 % 0 as b, 7 / 2 as c, -7 % 4 as d, bytes / status as e limit 1": [
        (None, None, 3.5, -3, 0.05)
    ],
    "where status = 500 select bytes + 1 as a, -bytes as b, bytes - 1 + 1 as c": [
        (None, -9223372036854775807, 9223372036854775807)
    ],
    "select (status - 1) * 2 as a, (status + 1) % 5 as b, -(status - 1) * 3 as c limit 1": [(398, 1, -597)],
    "select (1 - status) * 2 * (2 - status) as d, status - (status - 1) as e limit 1": [(78804, 1)],
    'select user + "!" + null as a, 1 + null as b, null as c limit 1': [(None, None, None)],
    "where user = 'user' or 'ann' = 'ann' select 'user' as kind limit 1": [("user",)],
    "select status + 1 as s where s > 400 select s * 2 as t": [(810,), (1002,), (810,)],
    "select peek(user, re('(n)([^(]?)'), 2) as a, peek(user, re('(n)([^(]?)'), 3) as b limit 1": [("n", None)],
    **{
        f"where status = 404 and user = 'Bob' select peek({text!r}, re({pattern!r}), {group}) as a": [(match,)]
        for text, pattern, group, match in (
            ("id=;", "id=([0-9]*)", 1, ""),
            ("idx", "id=([0-9]*)", 1, None),
            ("abc", "x*", 0, ""),
            ("abc", "[[:^alpha:]]*(z?)[(]*", 1, ""),
            ("abc", "x", 0, None),
            ("abc", "b{0}", 0, ""),
            ("", "", 0, ""),
            ("ac", "(a)|(x)", 2, None),
            ("h", "(?i:H)(?P<port>:([0-9]+))?", 2, None),
            ("h:", "h(:([0-9]*))?", 2, ""),
            ("n", "(n)([^(]?)", 2, ""),
            ("n", "(n)", 2, None),
            ("ab", "^(a)(x)?(b?)(b)$", 2, None),
            ("ab", "^(a)(x)?(b?)(b)$", 3, ""),
        )
    },
    **{
        f"where status = 404 and user = 'Bob' select int({text!r} + '') as a, int8({text!r} + '') as b": [whole]
        for text, whole in (
            ("200.0", (200, 200)),
            ("2e0", (2, 2)),
            ("13.572948467293847293841093845679289", (13, 13)),
            (" -1.9 ", (-1, -1)),
            ("+7.", (7, 7)),
            (".5", (0, 0)),
            ("-.5E+1", (-5, -5)),
            ("2147483647.9", (2147483647, 2147483647)),
            ("2147483648.0", (None, 2147483648)),
            ("9007199254740993.9", (None, 9007199254740993)),
            ("-9223372036854775808.9", (None, -9223372036854775808)),
            ("-9223372036854775809", (None, None)),
            ("9223372036854775808.0", (None, None)),
            ("9.3e18", (None, None)),
            ("1e400", (None, None)),
            ("1e-400", (0, 0)),
            *((text, (None, None)) for text in ("", ".", "e5", "nan", "inf", "1,5", "1_0", "0x10", "1.2.3", "- 5")),
        )
    },
    "select int(-1.7) as a, int8(-1.7) as b limit 1": [(-1, -1)],
    "group select first(user ~ re('n')) as a, last(not user -> 'n') as b, last(user = 'ann' and ok) as c": [
        (True, False, False)
    ],
    "select parsedate('infinity' + '') as a, parsedate(' -Infinity' + '') as b, parsedate('epoch' + '', 'yyyy') as c "
    "limit 1": [(None, None, None)],
    "select str(parsedate('2024-01-31')) as a, str(parsedate(replaceall(user, user, '2024-01-31 10:20'))) as b, "
    "str(parsedate(' 2024-01-31T10:20:30Z')) as c, "
    "str(parsedate(replaceall(user, user, '2024-01-31T10:20:30.4Z '))) as d limit 1": [
        ("2024-01-31 00:00:00.000", "2024-01-31 10:20:00.000", "2024-01-31 10:20:30.000", "2024-01-31 10:20:30.400")
    ],
    "select parsedate(replaceall(user, user, '2024')) as a, parsedate(replaceall(user, user, '2024-01-3 ')) as b, "
    "parsedate(user) as c limit 1": [(None, None, None)],
    "select str(timestamp(-99999999999999)) as a, str(timestamp(-62170000000000)) as b limit 1": [
        ("-1199-02-15 14:13:20.001", "-1-11-29 19:33:20.000")
    ],
    "select str(1e308 * 10 - 1e308 * 10) as a, str(seconds * 0 * (1e308 * 10)) as b limit 1": [("nan", "nan")],
    "select int8(float8(9223372036854775807)) as a, int8(-9223372036854775808.0) as b, int(1.5) as c limit 1": [
        (None, -9223372036854775808, 1)
    ],
    "select 0.1 + 0.2 as x limit 1": [(0.1 + 0.2,)],
    "group select count() as n, count(user) as u, sum(status) / count() as mean": [(5, 4, 301.6)],
    "where false group select count() as n, sum(bytes) as s": [(0, None)],
    "group by user": [("Bob",), ("ann",), ("cid",), (None,)],
    "group by user select count() as n where n > 1": [("ann", 2)],
    "group by user where count() > 1 select max(status)": [("ann", 404)],
    "group by user select count() as n select n * 2 as m where user = 'ann'": [("ann", 4)],
    "group by user select count() as n select *, n * 2 as m where n > 1": [("ann", 2, 4)],
    "group by user select count() as n group by n select count() as users": [(1, 3), (2, 1)],
    "group by user select first(status), last(status) where user = 'ann'": [("ann", 200, 404)],
    "group every 10m select count() as n": [(at(0), 3), (at(10), 2)],
    "group every 10m by ok every 600s select count() as n limit 2": [(at(0), False, 1), (at(0), True, 2)],
    "group every 10m by user select count() as n group every 1h select sum(n) as s": [(at(0), 5)],
    "group every 10m by user select user, count() as n where n = 2": [],
    "group select sum(bytes) as s": [(None,)],
    "where status = null select '4' as a group select avg(a) as x, sum(a + '.5') as y, median('?') as z": [
        (4.0, 4.5, None)
    ],
    "group select collectdistinct(user) as u, collectdistinct(ip) as i": [
        ("Bob, ann, cid", "10.0.0.1, 10.0.0.2, 192.168.1.1")
    ],
    'select `odd "name``` as x where x -> "\'"': [("it's",)],
}


@pytest.mark.parametrize(("clauses", "rows"), RESULTS.items())
def test_a_query_returns_its_rows(clauses: str, rows: list[tuple[Any, ...]], run: Run) -> None:
    assert run(f"from web.data {clauses}") == rows


@pytest.mark.parametrize(
    "condition",
    [
        *(f"status {operator} '404'" for operator in ("=", "!=", "/=", "<", "<=", ">", ">=")),
        *(f"'404' {operator} status" for operator in ("=", "!=", "/=", "<", "<=", ">", ">=")),
        "'200' <= status < '500'",
        "'200' <= status < 500",
        "200 <= status < '500'",
        "status < '500' < bytes",
        "'1' < status < '500' < bytes",
        "status in {'200', '404'}",
        "status in {200, '404', bytes}",
        "status in {'1', '2', '3', '4', '5', '6'}",
        "`in`('200', '404', status)",
        "`in`('404', 200, '404')",
        "`in`(status, bytes, '404')",
        "decode(status, '404', 'a', '200', 'b', 'c') = 'a'",
        "decode('404', status, 'a') = 'a'",
        "'404' in {200, status}",
        "'404' in {'200', status}",
        "bytes = '9223372036854775807'",
        "bytes = '-9223372036854775808'",
        "bytes > '2147483648'",
        "bytes = '-0'",
        "status = '404.0'",
        "status = '0404'",
        pytest.param(f"status = '-{'0' * 5000}404'", id="zeros"),
        "seconds = '1.5'",
        "seconds < '-2e3'",
        "seconds < '1E+2'",
        "status + 1 = '405'",
        "length(user) = '3'",
        "'404' = 404",
        "not status = '404' or bytes < '10'",
    ],
)
def test_a_number_in_quotes_compares_as_it_does_without_them(condition: str, compiled: Compiled) -> None:
    bare = re.sub(r"'([-+.\deE]+)'", r"\1", condition)
    assert bare != condition
    quoted, plain = (compiled(f"from web.data where {text}").select.sql() for text in (condition, bare))
    assert quoted == plain


def test_a_text_compares_with_a_number_in_quotes_as_a_text(run: Run) -> None:
    assert run("from web.data where user = '404' or '5' < user < '6' or user in {'1', '2'}") == []


def test_whole_numbers_are_calculated_as_their_parentheses_say(run: Run) -> None:
    dice = Random(7)

    def formula(depth: int) -> tuple[str, int]:
        if depth == 0:
            number = dice.randrange(9)
            return dice.choice([(str(number), number), (f"-({number})", -number), ("status", 200)])
        (one, first), (other, second) = formula(depth - 1), formula(dice.randrange(depth))
        sign, result = dice.choice([("+", first + second), ("-", first - second), ("*", first * second)])
        return f"({one} {sign} {other})", result

    formulas = [formula(1 + number % 4) for number in range(60)]
    items = ", ".join(f"{text} as c{number}" for number, (text, _) in enumerate(formulas))
    assert run(f"from web.data select {items} limit 1") == [tuple(result for _, result in formulas)]


@pytest.mark.parametrize("clauses", RESULTS)
def test_the_columns_that_a_text_names_are_those_of_the_answer(clauses: str, compiled: Compiled) -> None:
    """The client completes names by them; it does not know the names of expressions."""
    query = f"from web.data {clauses}"
    stored = [column.name for column in compiled("from web.data").columns]
    named = [name for one in answer(query) for name in (stored if one == ALL_COLUMNS else [one])]
    returned = [column.name for column in compiled(query).columns]
    assert named == [name for name in returned if name in stored or name.isidentifier()]


@pytest.mark.parametrize(
    ("clauses", "columns", "found"),
    [
        (
            "select user as place group by place every - select count(), last(eventdate)",
            "place count last",
            [("Bob", 1, at(1)), ("ann", 2, at(12)), ("cid", 1, at(3)), (None, 1, at(13))],
        ),
        ("select user where status = 404", "user", [("Bob",), ("ann",)]),
        ("select status + 1 as s select user where s = 405, bytes = 20", "user", [("Bob",)]),
        (
            "select status + 1 as status where status = 405 select user, status",
            "user status",
            [("Bob", 405), ("ann", 405)],
        ),
        (
            "select bytes * 2 as b select user as b select b, status where b = 'ann'",
            "b status",
            [("ann", 200), ("ann", 404)],
        ),
        ("select user limit 1 select status", "status", [(200,)]),
        ("select upper(user) as u select * where status = 404", "u", [("BOB",), ("ANN",)]),
        ("group by user, status select user, count() as n where status = 404", "user n", [("Bob", 1), ("ann", 1)]),
        (
            "group every 1d by user select user, count() as n group by n select max(user), count() as users",
            "n max users",
            [(1, "cid", 3), (2, "ann", 1)],
        ),
        ("select hour(eventdate) as h group by h select avg(seconds) as s", "h s", [(10, 3.375)]),
    ],
)
def test_a_name_is_the_last_select_s_or_else_that_of_a_column_before_it(
    clauses: str, columns: str, found: list[tuple[object, ...]], run: Run, compiled: Compiled
) -> None:
    query = f"from web.data {clauses}"
    assert [column.name for column in compiled(query).columns] == columns.split()
    assert run(query) == found


def test_columns_that_no_clause_names_are_not_carried_along(compiled: Compiled) -> None:
    plan = compiled("from web.data select lower(user) as u where u != 'x' select upper(u) as v where ok, v != 'Y'")
    inner = {column.name for column in plan.select.find_all(exp.Column)}
    assert inner & {"user", "ok", "status", "bytes", "seconds"} == {"user", "ok"}


ERRORS = {
    "from web.dta": "line 1, column 6: no table 'web.dta' (did you mean 'web.data'? tables are web.data)",
    "from web.data select usr": "line 1, column 22: no column 'usr' (did you mean 'user'?)",
    "from web.data select status as s group by s where user = 'ann'": "line 1, column 51: no column 'user'"
    " (after group there are only its keys and aggregates; first(…) keeps a value)",
    "from web.data select lower(user) as who where usr = 'ann'": "line 1, column 47: no column 'usr'"
    " (did you mean 'user'?)",
    "from web.data group every 1h select count() as n, n / 60 as `per min`": "line 1, column 51: no column 'n' yet:"
    " this select defines it (use it in the next one: select *, n / 60 as `per min`)",
    "from web.data group by user select count() as n, max(n) as most": "line 1, column 54: no column 'n' before the"
    " group: a select after it defines it (group once more to aggregate it: group select max(n))",
    "from web.data select lower(s), seconds / 1000 as s": "line 1, column 28: no column 's' yet:"
    " this select defines it (use it in the next one: select *, lower(s))",
    "from web.data group select percentle(bytes, 95)": "line 1, column 28: no function 'percentle'"
    " (did you mean 'percentile'?)",
    "from web.data group select p95(bytes)": "line 1, column 28: no function 'p95' (write percentile(…, 95))",
    "from web.data group select percentile(bytes, 101)": "line 1, column 46: a percentile is 0 to 100, not 101",
    "from web.data group select percentile(bytes, 0.95)": (
        "line 1, column 46: a percentile is 0 to 100: write 95 for 0.95"
    ),
    "from web.data group select percentile(bytes, seconds)": "line 1, column 46: argument 2 of percentile"
    " must be a literal, not an expression (for example percentile(seconds, 90))",
    "from web.data group select countif(status >= 500)": "line 1, column 28: no function 'countif'"
    " (write sum(int(status >= 500)))",
    "from web.data group select sum(status >= 500)": "line 1, column 28: sum takes (int), (float8) or (str), not (bool)"
    " (write sum(int(status >= 500)))",
    "from web.data group select count(status >= 500)": "line 1, column 28: count would also count rows where this is"
    " false (write sum(int(status >= 500)), or a where before the group)",
    "from web.data group by user where count(not isnull(ip) and ok) > 1": "line 1, column 35: count would also count"
    " rows where this is false (write sum(int(not isnull(ip) and ok)), or a where before the group)",
    "from web.data select distinct(user)": "line 1, column 22: no function 'distinct'"
    " (write group by user; hllppcount(user) counts distinct values)",
    "from web.data select weekday(eventdate)": "line 1, column 22: no function 'weekday'"
    " (write int8(epoch(eventdate) / 86400000 + 4) % 7, which counts from Sunday as 0)",
    "from web.data select row_number()": "line 1, column 22: no function 'row_number'",
    "from web.data where contains(user, 'a')": "line 1, column 21: no function 'contains' (write text -> \"part\")",
    "from web.data where user = FAIL": "line 1, column 28: no column 'FAIL' (text is in quotes: \"FAIL\";"
    " in a shell, put the query in single quotes)",
    "from web.data where user in {FAIL}": "line 1, column 30: no column 'FAIL' (text is in quotes: \"FAIL\";"
    " in a shell, put the query in single quotes)",
    "from web.data where user = usr": "line 1, column 28: no column 'usr' (did you mean 'user'?)",
    "from web.data where user = NULL": "line 1, column 28: no column 'NULL' (write null: keywords are in lower case)",
    "from web.data where status >= 500 -- server": "line 1, column 38: no column 'server' (a comment begins with //)",
    "from web.data select status --server, user": "line 1, column 31: no column 'server' (a comment begins with //)",
    "from web.data select -- all": "line 1, column 25: no column 'all' (a comment begins with //)",
    "from web.data select status - usr": "line 1, column 31: no column 'usr' (did you mean 'user'?)",
    "from web.data where ip <- '10.0.0.0/8'": "line 1, column 25: <- takes a network, not str"
    " (a network is written without quotes: <- 10.0.0.0/8)",
    "from other": "line 1, column 6: no table 'other' (tables are web.data)",
    "from web.data group by user select bytes": "line 1, column 36: no column 'bytes'"
    " (after group there are only its keys and aggregates; first(…) keeps a value)",
    "from web.data where user = 1": "line 1, column 26: cannot compare str with int4"
    " (str(…) converts to a string, float8(…) to a number)",
    "from web.data where ip = '10.0.0.1'": "line 1, column 24: cannot compare ip4 with str"
    " (an address is written without quotes: 10.0.0.1)",
    "from web.data where ip = user": "line 1, column 24: cannot compare ip4 with str"
    " (ip4(…) converts a string to an address)",
    "from web.data where user = 10.0.0.1": "line 1, column 26: cannot compare str with ip4"
    ' (an address in a column of text is in quotes: "10.0.0.1"; or write ip4(…) = 10.0.0.1)',
    "from web.data where user in {10.0.0.1}": "line 1, column 30: cannot compare str with ip4"
    ' (an address in a column of text is in quotes: "10.0.0.1"; or write ip4(…) = 10.0.0.1)',
    "from web.data where ip in {'10.0.0.1'}": "line 1, column 28: cannot compare ip4 with str"
    " (an address is written without quotes: 10.0.0.1)",
    "from web.data where eventdate >= 2024-01-31": "line 1, column 31: cannot compare timestamp with int8"
    ' (the range of the query chooses the dates; here write parsedate("2024-01-31"))',
    "from web.data where eventdate > 5": "line 1, column 31: cannot compare timestamp with int4"
    " (timestamp(…) converts milliseconds to a timestamp)",
    "from web.data group by user select count": "line 1, column 36: no column 'count' (the function is count())",
    "from web.data group by hour": "line 1, column 24: no column 'hour' (write group every 1h, or hour(eventdate))",
    **{
        f"from web.data where status = '{text}'": "line 1, column 28: cannot compare int4 with str"
        " (str(…) converts to a string, float8(…) to a number)"
        for text in (
            "",
            "four",
            " 404",
            "404 ",
            "+404",
            "4_0_4",
            "404.",
            ".5",
            "0x194",
            "4 04",
            "٤٠٤",
            "nan",
            "1e",
            "-",
        )
    },
    **{
        f"from web.data where status {condition}": f"line 1, column {column}: the number is too large: {number[:40]}"
        for number in ("9223372036854775808", "-9223372036854775809", "1e999", "-1e999", "9" * 5000)
        for condition, column in ((f"= '{number}'", 28), (f"in {{1, '{number}'}}", 28))
    },
    "from web.data where user in {'1', 2}": "line 1, column 35: cannot compare str with int4"
    " (str(…) converts to a string, float8(…) to a number)",
    "from web.data where '1' in {status, user}": "line 1, column 37: cannot compare int4 with str"
    " (str(…) converts to a string, float8(…) to a number)",
    "from web.data where ok = '1'": "line 1, column 24: cannot compare bool with str",
    "from web.data where eventdate > '2024-01-01'": "line 1, column 31: cannot compare timestamp with str"
    ' (the range of the query chooses the dates; here write parsedate("2024-01-01"))',
    "from web.data where eventdate > '2024-01-01 10:00'": "line 1, column 31: cannot compare timestamp with str"
    ' (the range of the query chooses the dates; here write parsedate("2024-01-01 10:00"))',
    "from web.data where eventdate > parsedate('31/01/2024')": "line 1, column 43: '31/01/2024' is not a date as "
    'yyyy-MM-dd HH:mm:ss.SSS (other dates need their pattern: parsedate("31/01/2024", "dd/MM/yyyy"))',
    "from web.data where eventdate > parsedate('31/01/2024 10:00', 'dd/MM/yyyy')": "line 1, column 43: "
    "'31/01/2024 10:00' is not a date as dd/MM/yyyy",
    "from web.data where user ~ 'ann'": 'line 1, column 26: ~ takes a str and re("…"), not str and str'
    ' (re("ann") is a pattern; -> "ann" finds a part)',
    "from web.data where status ~ re('^5')": 'line 1, column 28: ~ takes a str and re("…"), not int4 and regex'
    " (str(…) converts to a string)",
    "from web.data where user = re('^a')": "line 1, column 26: cannot compare str with regex (a pattern follows ~)",
    "from web.data where 'user' = 'ann'": "line 1, column 21: 'user' is a text here, not the column"
    " (a name is not in quotes: user)",
    "from web.data select user as `Full Name` where 'Full Name' ~ re('a')": "line 1, column 48: 'Full Name' is a text "
    "here, not the column (a name is not in quotes: `Full Name`)",
    "from web.data where 'user' in {'ann'}": "line 1, column 21: 'user' is a text here, not the column"
    " (a name is not in quotes: user)",
    "from web.data group by 'user' select count()": "line 1, column 24: 'user' is a text here, not the column"
    " (a name is not in quotes: user)",
    "from web.data group every 1d select sum('bytes')": "line 1, column 41: 'bytes' is a text here, not the column"
    " (a name is not in quotes: bytes)",
    "from web.data group select max(float8('odd \"name`') * 2)": "line 1, column 39: 'odd \"name`' is a text here, not"
    ' the column (a name is not in quotes: `odd "name```)',
    "from web.data select 'user'": "line 1, column 22: 'user' is a text here, not the column"
    " (a name is not in quotes: user)",
    "from web.data where user = 'a' or 'b'": "line 1, column 35: a condition must be a bool, not str"
    ' (compare it with a column; for several values: user in {"a", "b"})',
    "from web.data group by user, count()": "line 1, column 30: count is an aggregate, which cannot be a key"
    " (aggregates follow in a select: group by user select count())",
    "from web.data where user < null": "line 1, column 26: cannot compare str with null",
    "from web.data where user in {'a', null}": "line 1, column 35: nothing equals null (use isnull(…))",
    "from web.data where status": "line 1, column 21: a condition must be a bool, not int4",
    "from web.data where count() > 1": "line 1, column 21: count is an aggregate, and there is no group before it"
    " (write group or group by … before select)",
    "from web.data group select sum(count())": "line 1, column 32: count is inside sum; aggregates cannot be nested",
    "from web.data select lowr(user)": "line 1, column 22: no function 'lowr' (did you mean 'lower'?)",
    "from web.data select lower(status)": 'line 1, column 22: lower takes (str), not (int4) (for example lower("Ann"))',
    "from web.data select round()": "line 1, column 22: round takes (number, digits?), not ()"
    " (for example round(2.345, 1))",
    "from web.data select user + 1": "line 1, column 29: + cannot take str and int4"
    " (str(…) converts to a string; + joins strings)",
    "from web.data select user * 2": "line 1, column 29: * cannot take str and int4 (float8(…) converts to a number)",
    "from web.data where user ~ re('(')": "line 1, column 31: not a regular expression: missing ): (",
    "from web.data select ok as Ok, ok": "line 1, column 32: two columns are named 'ok' ('Ok' differs only in its case)"
    " (rename one with as)",
    "from web.data select *, user": "line 1, column 25: two columns are named 'user' (rename one with as)",
    "from web.data select user as eventdate": "line 1, column 30: eventdate always is the date of the event"
    " (choose another name for the column)",
    "from web.data group": "line 1, column 15: the group computes nothing"
    " (name columns to group by, or select an aggregate such as count())",
    "from web.data group by user group every 5m": "line 1, column 29: these rows have no eventdate to be grouped by",
    "from web.data select formatdate(eventdate, 'YYYY')": "line 1, column 44: unknown part 'YYYY' in a date pattern"
    " (parts are yyyy MM dd HH mm ss SSS; put other letters in 'quotes')",
    "from web.data select formatdate(eventdate, '')": "line 1, column 44: the date pattern is empty"
    " (parts are yyyy MM dd HH mm ss SSS)",
    "from web.data select re('a')": "line 1, column 22: a regex cannot be the value of a column",
    "from web.data select ip4('300.1.1.1')": "line 1, column 26: '300.1.1.1' is not an address (write 10.0.0.1)",
}


@pytest.mark.parametrize(("query", "message"), ERRORS.items())
def test_a_query_without_a_meaning_is_refused_at_its_place(query: str, message: str, compiled: Compiled) -> None:
    with pytest.raises(QueryError) as caught:
        compiled(query)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("from t where Amount (EUR) > 3", 14),
        ("from t group by Amount (EUR) select sum(Amount (EUR))", 41),
        ("from t group by eventdate select sum(Amount (EUR))", 38),
        ("from t select eventdate as e group by Amount (EUR)", 39),
    ],
)
def test_a_column_that_reads_like_a_call_is_to_be_in_back_quotes(compiled: Compiled, query: str, column: int) -> None:
    table = Table("t", (Column("eventdate", Type.TIMESTAMP), Column("Amount (EUR)", Type.INT4)))
    with pytest.raises(QueryError) as caught:
        compiled(query, catalog={"t": table})
    assert str(caught.value) == (
        f"line 1, column {column}: no function 'Amount' (write the column in back quotes: `Amount (EUR)`)"
    )


def test_the_window_holds_its_start_and_not_its_end(run: Run) -> None:
    window = {"start": at(0).replace(tzinfo=UTC), "end": at(3).replace(tzinfo=UTC)}
    assert run("from web.data select user", **window) == [("ann",), ("Bob",)]
    east = timezone(timedelta(hours=2))
    start = datetime(2024, 1, 1, 12, 12, tzinfo=east)
    assert run("from web.data select user", start=start, end=None) == [("ann",), (None,)]


@pytest.mark.parametrize(
    ("skip", "limit", "users"),
    [(0, None, ["Bob", "cid", "ann"]), (1, None, ["cid", "ann"]), (1, 1, ["cid"]), (0, 9, ["Bob", "cid", "ann"])],
)
def test_skip_and_limit_of_the_request_count_what_the_query_leaves(
    skip: int, limit: int | None, users: list[str], run: Run
) -> None:
    rows = run("from web.data offset 1 limit 3 select user", skip=skip, limit=limit)
    assert [user for (user,) in rows] == users


def test_the_zone_moves_today_and_nothing_else(run: Run) -> None:
    zone = timezone(timedelta(hours=9))
    [row] = run("from web.data select formatdate(today()), hour(eventdate) limit 1", zone=zone)
    assert row == ("2024-05-05 15:00:00.000", 10)


def test_a_table_in_order_is_not_sorted_again_and_others_are(compiled: Compiled) -> None:
    def sql(ordered: bool, query: str) -> str:
        table = Table("t", (Column("eventdate", Type.TIMESTAMP), Column("a", Type.INT4)), ordered)
        return compiled(query, catalog={"t": table}).select.sql("duckdb")

    window = """FROM "t" AS "t" WHERE "t"."eventdate" >= CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP)"""
    assert sql(True, "from t select a") == f'SELECT "t"."a" AS "a" {window}'
    assert sql(False, "from t select a") == f'SELECT "t"."a" AS "a" {window} ORDER BY "t"."eventdate", "t"."(position)"'
    assert sql(True, "from t group by a").endswith(' GROUP BY 1) AS "t" ORDER BY "t"."c1"')


def test_the_columns_of_a_plan_carry_their_types(compiled: Compiled) -> None:
    plan = compiled(
        "from web.data group every 1h by ip select count(), avg(bytes) as mean, 1 as one, 3000000000, null as x"
    )
    assert plan.columns == (
        Column("eventdate", Type.TIMESTAMP),
        Column("ip", Type.IP4),
        Column("count", Type.INT8),
        Column("mean", Type.FLOAT8),
        Column("one", Type.INT4),
        Column("3000000000", Type.INT8),
        Column("x", Type.STR),
    )
    assert plan.table == "web.data"


def test_a_table_that_does_not_exist_is_answered_with_the_first_twenty_there_are(compiled: Compiled) -> None:
    columns = (Column("eventdate", Type.TIMESTAMP),)
    catalog = {name: Table(name, columns) for name in (f"t{number:02}" for number in reversed(range(25)))}
    with pytest.raises(QueryError) as caught:
        compiled("from nosuch", catalog=catalog)
    listed = ", ".join(f"t{number:02}" for number in range(20))
    assert caught.value.hint == f"tables are {listed} and 5 more"
    with pytest.raises(QueryError) as caught:
        compiled("from nosuch", catalog={})
    assert (caught.value.message, caught.value.hint) == ("no table 'nosuch'", None)
