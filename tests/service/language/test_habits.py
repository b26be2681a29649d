"""What other query languages write is answered with what to write instead, at its place."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.api.foreign_functions import function_answer
from svcctl.service.language import FUNCTIONS, QueryError, parse
from svcctl.service.language.habits import HABITS, answer, blanked

SORTED = (
    "a query does not sort: groups come in the order of their keys, other rows by date; sort what is printed: "
    "query … --sort n:desc"
)
ONE_TABLE = "a query reads one table: run a query for each"
LOWER = "keywords are in lower case"
COMMENT = "a comment begins with //"
QUOTES = "; in a shell, put the query in single quotes"

MEMBER = (
    "a name with dots is in back quotes; an object of JSON is kept as text: "
    r"""peek(…, re("\"c\":\"?([^\",}]*)"), 1) gives a member of it"""
)
MEMBER_OF_TEXT = (
    r"""an object of JSON is kept as text: peek(text, re("\"name\":\"?([^\",}]*)"), 1) gives a member of it"""
)

ANSWERS = {
    "from t where a = {{c}}": ("{", "give it a value with --var c=…"),
    "SELECT a FROM t": ("SELECT", f"{LOWER}: from t where … group by … select …"),
    "SELECT a": ("SELECT", LOWER),
    "from t WHERE a": ("WHERE", LOWER),
    "from t where a AND b": ("AND", LOWER),
    "from t order by n desc": ("order", SORTED),
    "from t ORDER BY n": ("ORDER", SORTED),
    "from t group by a select count() as n sort n": ("sort", SORTED),
    "from t group by a desc": ("desc", SORTED),
    "from t group select count(distinct a)": (
        "count(distinct a",
        "write hllppcount(a), which is approximate, or group by a group select count()",
    ),
    "from t group select count(distinct `Amount €`) as n": (
        "count(distinct `Amount €`",
        "write hllppcount(`Amount €`), which is approximate, or group by `Amount €` group select count()",
    ),
    "from t select distinct a, b": ("distinct a", "write group by a, b"),
    "from t select distinct `a b`, c": ("distinct `a b`", "write group by `a b`, c"),
    "from t group select count(*)": ("*", "write count()"),
    "from t group by a having n > 3": (
        "having",
        "write where after the select of the group: group by user select count() as n where n > 5",
    ),
    "from t limit 10, 5": (",", "write offset 10 limit 5"),
    'from t where a like "adm%"': ("like", 'write ~ nameglob("adm*")'),
    "from t where a LIKE '_x'": ("LIKE", 'write ~ nameglob("?x")'),
    'from t where a not like "x%"': ("not", 'write not (… ~ nameglob("x*"))'),
    'from t where a ilike "%CART%"': ("ilike", 'write a ->> "CART"'),
    "from t where a ILIKE 'cart'": ("ILIKE", 'write eqic(a, "cart")'),
    'from t where a ilike "Cart%"': ("ilike", 'write startswith(lower(a), "cart")'),
    'from t where a not ilike "%C_rt%"': ("not", 'write not (lower(a) ~ nameglob("*c?rt*"))'),
    "from t where a = 5xx": ("5xx", "write 500 <= a < 600"),
    "from t where a in {500..599}": ("500.", "write 500 <= a <= 599"),
    'from t where a matches "^x"': ("matches", 'write a ~ re("^x")'),
    "from t where a not rlike 'x'": ("not", "write not (a ~ re('x'))"),
    "from t count": ("count", "write group select count()"),
    "from t where a = 1 count()": ("count", "write group select count()"),
    "from t group by a count()": ("count", "write select count()"),
    "from t where a is null": ("is", "write = null"),
    "from t where a is not null": ("is", "write != null"),
    "from t where a between 1 and 3": ("between", "write 1 <= a <= 3"),
    "from t where `Amount €` between 1 and `upper end`": (
        "between",
        "write 1 <= `Amount €` <= `upper end`",
    ),
    "from t where a not between 'a b' and 'c d', b": ("not", "write not ('a b' <= a <= 'c d')"),
    'from t where `a b` in ("x", "y")': ("in (", 'write `a b` in {"x", "y"}'),
    'from t where `a b` like "x%"': ("like", 'write ~ nameglob("x*")'),
    "from t where `a b` = *x*": ("*", 'write `a b` ~ nameglob("*x*")'),
    "from t where a between": ("between", "write 1 <= x <= 3"),
    "from t where a in 10.0.0.0/8": ("in 10.0.0.0/8", "write <- 10.0.0.0/8"),
    'from t where a in ("x", "y")': ("in (", 'write a in {"x", "y"}'),
    "from t where a in [1]": ("in [", "write a in {1}"),
    'from t where a not in ("x")': ("not", 'write not (a in {"x"})'),
    "from t where a not in {1, 2}": ("not", "write not (a in {1, 2})"),
    "from t select case when a then b end": ("case when", "write ifthenelse(condition, value, other value)"),
    "from t where a == 1": ("==", "write ="),
    "from t where a <> 1": ("<>", "write !="),
    "from t where a => 500": ("=>", "write >="),
    "from t where a =< 500": ("=<", "write <="),
    "from t where a = > 500": ("= >", "write >="),
    "from t where a =~ 'x'": ("=~", 'write ~ re("…")'),
    "from t where a && b": ("&", "write and"),
    "from t where a || b": ("|", "write or; strings are joined by +"),
    "from t | where a": (
        "|",
        "there are no pipes: the clauses follow one another, as in where … group by … select …",
    ),
    "from t where !a": ("!", "write not"),
    "from t select rank() over (order by a)": ("over", "a query computes nothing over neighbouring rows"),
    "from t where a = “x”": ("“", 'write straight quotes: "…"'),
    "from t group select count() as 'n'": ("'n'", "a name is not in quotes: as `n`"),
    "from t # all": ("#", COMMENT),
    "from t /* all */": ("/", COMMENT),
    "from t -- all of it": ("-", COMMENT),
    "from t where a = 1 -- all of it": ("-- all of", COMMENT),
    "from t where a = 1 --all of it": ("--all of", COMMENT),
    "from t select a, -- the first\nb": ("-- the first", COMMENT),
    "from t select a, -- first\nb": ("-- first", COMMENT),
    "from t where a -- 2 of them\n = 1": ("-- 2 of", COMMENT),
    "from t;": (";", "a query is one statement without a semicolon"),
    "from t join u": ("join", ONE_TABLE),
    "from t left outer join u": ("left", ONE_TABLE),
    "from t union from u": ("union", ONE_TABLE),
    "from t, u": (",", ONE_TABLE),
    "from t as x": ("as", "a table has no other name: leave it out"),
    "from t stats count by a": ("stats", "write group by … select count()"),
    "index=t | stats count": ("index", "a query begins with its table: from t where … group by … select …"),
    "T | where x": ("T", "a query begins with its table: from T where … group by … select …"),
    "df[df.x > 1].groupby('y')": ("df", "a query begins with its table: from df where … group by … select …"),
    "a.b where x": ("a", "a query begins with its table: from a.b where … group by … select …"),
    'search "x"': ("search", 'a query begins with its table: from TABLE where message -> "…"'),
    '{app="x"} | json': ("{", 'a query begins with its table: from TABLE where message -> "…"'),
    '{app="x"} |= "error" | json': ("{", 'a query begins with its table: from TABLE where message -> "error"'),
    "from t group select count() filter (where a in {1}) as e": (
        "filter",
        "write sum(int(a in {1})) without count()",
    ),
    'from t where a contains "x"': ("contains", 'write a -> "x"'),
    "from t where a startswith 'x'": ("startswith", "write startswith(a, 'x')"),
    "from t filter a": ("filter", "write where"),
    "from t eval a": ("eval", "write select … as name"),
    "from t head 5": ("head", "write limit 5"),
    "from t every 5m": ("every", "write group every 5m"),
    "from t group every 1w": ("every 1w", "write every 7d, whose periods begin on Thursdays"),
    "from t group every 5min": ("every 5min", "write every 5m"),
    "from t group every 5 minutes": ("every 5", "write every 5m"),
    "from t group every hour": ("every hour", "write every 1h"),
    "from t group every 1month": ("every 1month", "a period is in s, m, h or d: write every 30d"),
    "from t where a > today() - 1h": (
        "1h",
        "moments are counted in milliseconds: epoch(eventdate) > epoch(now()) - 3600000",
    ),
    "from t where eventdate > 1h": (
        "1h",
        "moments are counted in milliseconds: epoch(eventdate) > epoch(now()) - 3600000",
    ),
    "from t where timeTaken > 2s": (
        "2s",
        "write a number: 2000 if timeTaken is in milliseconds, 2 if it is in seconds",
    ),
    "from t where a >= 400 and < 500": ("<", "write a >= 400 and a < 500"),
    "from t where a = 200 or = 404": ("=", "write a = 200 or a = 404"),
    "from t group by span=1h": ("by span=1h", "write group every 1h"),
    "from t group by bucket(5m) select count() as n": ("by bucket(5m", "write group every 5m"),
    "from t group by bin(eventdate, 1d)": ("by bin(eventdate, 1d", "write group every 1d"),
    "from t group by a select count() n": ("n", "write as n"),
    "from t select uri u": ("u", "write as u, or `uri u` if that is one column"),
    "from t select a, Order ID": ("ID", "write as ID, or `Order ID` if that is one column"),
    "from t group by user id": ("id", "a name with a space is in back quotes: `user id`"),
    "from t where a = 1 and user id > 3": ("id", "a name with a space is in back quotes: `user id`"),
    "from t where a = 10.0.0.0/24": ("= 10.0.0.0/24", "write a <- 10.0.0.0/24"),
    "from t where a != 10.0.0.0/24": ("!= 10.0.0.0/24", "write not (a <- 10.0.0.0/24)"),
    "from t where a ~ re(^zoe)": ("^", f'text is in quotes: "^zoe"{QUOTES}'),
    "from t where a ~ nameglob(adm*)": ("adm*)", f'text is in quotes: "adm*"{QUOTES}'),
    "show tables": ("show", "'svcctl tables' lists the tables, 'svcctl tables NAME' the columns of one"),
    "list tables": ("list", "'svcctl tables' lists the tables, 'svcctl tables NAME' the columns of one"),
    "from t where a = /index.html": ("/", f'text is in quotes: "/index.html"{QUOTES}'),
    "from t select a.b.c, d": (".", MEMBER),
    'from t where `a`.c = "x"': (".", MEMBER),
    "from t group every 1h, country select count()": (",", "write every 1h by country"),
    "from t group every 1h, country(ip), b": (",", "write every 1h by country(ip)"),
    "from t group every 1h, by `a b`": (",", "write every 1h by `a b`"),
    "from t group every 1h user select count()": ("user", "write every 1h by user"),
    "from t group user, country": ("user", "write group by user"),
    "from t group by every 1h select count()": ("by every", "leave out 'by': group every 1h"),
    "from t group by every 5 minutes": ("by every", "leave out 'by': group every 5m"),
    "from t group by every 10m, uri select count()": ("by every", "write group every 10m by uri"),
    "from t group by every hour by country(ip), b": ("by every", "write group every 1h by country(ip)"),
    "from t groupby user": ("groupby", "write group by"),
    "from t group by user, every 1h": (", every", "leave out the comma: every 1h"),
    "from t group by a select count() as n where n > 3, max(eventdate) as last": (
        "as",
        "a condition has no name: what has one belongs to the select before it",
    ),
    "from t group select count(where isnull(a) and b = 5) as n": ("where", "write sum(int(isnull(a) and b = 5))"),
    # a comma too many, what is missing, and a forgotten select
    "from t group by uri, select count() as n": ("select", "leave out the comma before 'select'"),
    "from t where a >= 500, group by uri": ("group", "leave out the comma before 'group'"),
    "from t select a, where b": ("where", "leave out the comma before 'where'"),
    "from t group every 1h, select count()": (",", "leave out the comma before 'select'"),
    "from t, select a": (",", "leave out the comma before 'select'"),
    "from t where group by a": ("group", "a condition is missing behind 'where'"),
    "from t where a = 1 and select b": ("select", "a condition is missing behind 'and'"),
    "from t group by select count()": ("select", "a column is missing behind 'by'"),
    "from t group by uri count()": ("count", "write select count()"),
    "from t group by a, b sum(int(c > 1)) as n": ("sum", "write select sum(int(c > 1))"),
    "from t group every 1h count()": ("count", "write select count()"),
    "from t count()": ("count", "write group select count()"),
    "from t user, n": ("user", "write select user, n"),
    "from t where user = emil* limit 1": ("emil* limit", 'write user ~ nameglob("emil*")'),
    "from t where user != emil* select a": ("emil* select", 'write not (user ~ nameglob("emil*"))'),
    "from t where user = emil* and b": ("emil* and", 'write user ~ nameglob("emil*")'),
    "from t where user = *emil*, b": ("*", 'write user ~ nameglob("*emil*")'),
    "from t where a = /cart*": ("/", 'write ~ nameglob("/cart*")'),
    "from t where user = emil*": ("emil", 'write user ~ nameglob("emil*")'),
    "from t where a = ann.2": ("ann.", f'text is in quotes: "ann.2"{QUOTES}'),
}


@pytest.mark.parametrize(("query", "expected"), ANSWERS.items())
def test_a_habit_is_answered_at_its_place_with_what_to_write(query: str, expected: tuple[str, str]) -> None:
    written, hint = expected
    with pytest.raises(QueryError) as caught:
        parse(query)
    error = caught.value
    assert (error.message, error.hint, error.expected) == (f"unexpected '{written}'", hint, ())
    assert query[error.column - 1 :].startswith(written)


def test_every_habit_of_the_table_is_tried() -> None:
    used = set()
    for query in ANSWERS:
        used |= {row.pattern.pattern for row in HABITS if row.pattern.search(blanked(query))}
    assert [row.pattern.pattern for row in HABITS if row.pattern.pattern not in used] == []


@pytest.mark.parametrize(
    "query",
    [
        'from t where a = "order by; == # {{c}} |" foo',
        "from t where a = 1 // order by\n foo",
        "from t where a = b foo",
        "from t where `a | b` = 1 foo",
        "from t select a, limit, b",
        "from t where a, limit > 3",
        "from t select a, b select",
    ],
)
def test_what_is_quoted_or_elsewhere_is_no_habit(query: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(query)
    assert caught.value.expected != ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("contains", 'write text -> "part"'),
        ("Concat", "strings are joined by +"),
        ("substring", 'peek(text, re("…")) gives a part of a text, split(text, ",", 1) one between separators'),
        ("regexp", 'write text ~ re("…")'),
        ("coalesce", "write ifthenelse(isnull(x), other, x)"),
        ("countIf", "write sum(int(x))"),
        ("count_if", "write sum(int(x))"),
        ("distinct", "write group by x; hllppcount(x) counts distinct values"),
        ("var", "write stddev(x) * stddev(x)"),
        ("p95", "write percentile(…, 95)"),
        ("date", 'write group every 1d, or formatdate(x, "yyyy-MM-dd")'),
        ("toStartOfDay", 'write group every 1d, or formatdate(x, "yyyy-MM-dd")'),
        ("day_of_week", "write int8(epoch(x) / 86400000 + 4) % 7, which counts from Sunday as 0"),
        ("earliest", "write first(x)"),
        ("toNumber", "write float8(x)"),
        ("parse_json", MEMBER_OF_TEXT),
        ("nosuch", None),
    ],
)
def test_a_function_of_another_language_is_answered_with_the_one_to_write(name: str, expected: str | None) -> None:
    assert function_answer(name, "x") == expected


def test_no_function_of_the_language_is_taken_for_one_of_another() -> None:
    assert [name for name in FUNCTIONS if function_answer(name) is not None] == []


@given(st.text(alphabet=" \n'\"`\\/-<=|;{}()[],.*0159acdeimnorstw“", max_size=80), st.integers(0, 80))
def test_an_answer_is_at_a_place_of_the_text(text: str, index: int) -> None:
    found = answer(text, index)
    assert found is None or 0 <= found[0] < len(text)


@pytest.mark.parametrize(
    "part", ["a in ", "'", '"\\', "select distinct ", "count ( ", "x between ", "- ", "//", "--", "-- \n"]
)
def test_an_answer_costs_no_more_than_the_text_is_long(part: str) -> None:
    text = part * (250_000 // len(part))
    began = time.process_time()
    for index in (0, len(text) // 2, len(text) - 1):
        answer(text, index)
    assert time.process_time() - began < 1
