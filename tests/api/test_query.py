"""Requests of queries, and the clauses of a query text, against what the service's parser finds in it."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.language_page import EXAMPLES as PAGE_EXAMPLES
from system.test_example_queries import EXAMPLES

from svcctl.api.destinations import Destination
from svcctl.api.query import (
    Clause,
    Outline,
    QueryRequest,
    answer,
    counting,
    is_dated,
    keys,
    one_line,
    outline,
    selecting,
    visible,
)
from svcctl.api.response import MODES
from svcctl.service.language import QueryError, parse, tree


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("destination", [None, Destination("donothing", {})])
def test_csv_and_tsv_ask_for_padding_which_other_formats_have_without(
    mode: str, destination: Destination | None
) -> None:
    request = QueryRequest(from_="1h", to="now", query="from t", mode=mode, destination=destination)
    asks = mode in ("csv", "tsv") and destination is None
    assert json.loads(request.body()).get("keepAlive") == ({"type": "token"} if asks else None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from web.data", Outline("web.data", (Clause("from"),))),
        (
            'from t where reason = "limit reached" // limit 5\nselect `limit`, substring(a, 1, 2)',
            Outline("t", (Clause("from"), Clause("where"), Clause("select"))),
        ),
        (
            "select count() as n from `a-b` . c group every 5m by user every 300s offset 1limit 010",
            Outline(
                "a-b.c",
                (
                    Clause("select"),
                    Clause("from"),
                    Clause("group", every=300),
                    Clause("offset", number=1),
                    Clause("limit", number=10),
                ),
            ),
        ),
        (
            "from t group by a group pragma hint: 5m",
            Outline("t", (Clause("from"), Clause("group"), Clause("group"), Clause("pragma"))),
        ),
        # Texts that svcctl's own service refuses have an outline too: another service may know more.
        (
            "from t where within(limit 5) LIMIT 3 limit",
            Outline("t", (Clause("from"), Clause("where"), Clause("limit"))),
        ),
        (
            "from t where a = 'not closed limit 5\nlimit 6",
            Outline("t", (Clause("from"), Clause("where"), Clause("limit", 6))),
        ),
        ("", Outline("", ())),
    ],
)
def test_the_clauses_of_a_text(text: str, found: Outline) -> None:
    assert outline(text) == found


@pytest.mark.parametrize(
    ("text", "every", "counts"),
    [
        ("from t", "", "from t group select count() as n"),
        (
            "from t where a in {1} select b",
            "every 60s",
            "from t where a in {1} select b group every 60s select count() as n",
        ),
        ("select a from t where b", "every 60s", "from t where b group every 60s select count() as n"),
        ('from t pragma a:"b" pragma c:1', "", 'from t group select count() as n pragma a:"b" pragma c:1'),
    ],
)
def test_the_rows_of_a_query_are_counted_by_another_one(text: str, every: str, counts: str) -> None:
    assert counting(text, every) == counts


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("from t where a = 1 limit 5", ("*",)),
        ("from t select a, b as c, max(d), e + 1, `f g`", ("a", "c", "max", "f g")),
        ("from t select *, a + b as sum", ("*", "sum")),
        ("from t group every 5m by user, lower(a) as l every 5m select count() as n", ("eventdate", "user", "l", "n")),
        ("from t group every - by user", ("user",)),
        ("select count() as n from t group by user", ("user", "n")),
        ("from t group by user select count() as n, user as who where n > 1", ("n", "who")),
        ("from t group by user select count() as n select n", ("user", "n")),
        ("from t select a from", ("a",)),
        ("", ("*",)),
    ],
)
def test_the_columns_of_the_answer(text: str, columns: tuple[str, ...]) -> None:
    assert answer(text) == columns


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from t select a", ()),
        ("from t group every 5m by status, hour(eventdate) as h select count() as n", ("eventdate", "status", "h")),
        ("from t group by a group by b select count()", ("b",)),
        ("from t group by a, b select count() as n, b", ("b",)),
        ("", ()),
    ],
)
def test_the_keys_of_the_answer(text: str, found: tuple[str, ...]) -> None:
    assert keys(text) == found


@given(
    st.text(alphabet=" \n'\"`,*()-/5mabsy", max_size=60),
    st.sampled_from(["", "select ", "group by ", "from t select "]),
)
def test_any_text_has_columns(text: str, begin: str) -> None:
    assert all(answer(begin + text)) or answer(begin + text) == ()


@pytest.mark.parametrize("part", ["select *, * ", "select a, ", "a, ", "group by a, b select *, c ", ", as "])
def test_the_columns_of_a_long_text_cost_no_more_than_it_is_long(part: str) -> None:
    began = time.process_time()
    answer("from t select " + part * (100_000 // len(part)))
    assert time.process_time() - began < 1


def in_normal_form(found: Outline) -> list[Clause]:
    """The clauses in the order of the parser's tree: a leading select is behind the last group, or at the end."""
    clauses = [clause for clause in found.clauses if clause.keyword not in ("from", "pragma")]
    if found.clauses[:1] == (Clause("select"),):
        leading = clauses.pop(0)
        groups = [index for index, clause in enumerate(clauses) if clause.keyword == "group"]
        clauses.insert(groups[-1] + 1 if groups else len(clauses), leading)
    return clauses


def parsed(query: tree.Query) -> list[Clause]:
    def of(clause: tree.Clause) -> Clause:
        match clause:
            case tree.Where():
                return Clause("where")
            case tree.Select():
                return Clause("select")
            case tree.Group(every):
                return Clause("group", every=every)
            case tree.Limit(count):
                return Clause("limit", count)
            case tree.Offset(count):
                return Clause("offset", count)

    return [of(clause) for clause in query.clauses]


def check_against_the_parser(text: str) -> None:
    query, found = parse(text), outline(text)
    assert found.table == query.table
    assert in_normal_form(found) == parsed(query)
    assert [clause.keyword for clause in found.clauses].count("from") == 1
    assert [clause.keyword for clause in found.clauses].count("pragma") == len(query.pragmas)


@pytest.mark.parametrize("text", [*EXAMPLES, *(text for _, text in PAGE_EXAMPLES)])
def test_the_outline_of_an_example_is_the_parsers(text: str) -> None:
    check_against_the_parser(text)


# Queries as lists of tokens, from the rules of the grammar, with whatever may look like a keyword inside

Tokens = list[str]

TRICKY = ["limit 5", "from t", "//", "`", "(", "}", "group every 5m", "é", "\\t", "\\\\", "a"]
strings = st.builds(
    lambda quote, parts: quote + "".join(parts) + quote,
    st.sampled_from("\"'"),
    st.lists(st.sampled_from([*TRICKY, "\\'", '\\"']), max_size=3),
)
quoted = st.lists(st.sampled_from([*TRICKY, '"', "'", "``"]), min_size=1, max_size=3).map(
    lambda parts: "`" + "".join(part for part in parts if part != "`") + "x`"
)
names = st.sampled_from(["a", "limits", "_from", "where2", "großväter", "e5", "s", "group.by", "a.limit"]) | quoted
integers = st.sampled_from(["0", "5", "007", "9223372036854775807"])
numbers = integers | st.sampled_from(["1.5", "1e5", "2.5E-3", "10.0.0.1"])
periods = st.sampled_from(["5m", "300s", "05m", "1h", "2d"])


def joined(*parts: st.SearchStrategy[Tokens]) -> st.SearchStrategy[Tokens]:
    return st.tuples(*parts).map(lambda lists: [token for tokens in lists for token in tokens])


def word(*tokens: str) -> st.SearchStrategy[Tokens]:
    return st.just(list(tokens))


def one(token: st.SearchStrategy[str]) -> st.SearchStrategy[Tokens]:
    return token.map(lambda text: [text])


def listed(item: st.SearchStrategy[Tokens], separator: str = ",") -> st.SearchStrategy[Tokens]:
    return st.lists(item, min_size=1, max_size=3).map(
        lambda items: [token for tokens in items for token in [separator, *tokens]][1:]
    )


operators = one(st.sampled_from(["+", "-", "*", "/", "%", "=", "/=", "<", "->", "~", "and", "or"]))


def compound(inner: st.SearchStrategy[Tokens]) -> st.SearchStrategy[Tokens]:
    return st.one_of(
        joined(word("("), inner, word(")")),
        joined(one(names), word("("), listed(inner), word(")")),
        joined(one(names), word("(", ")")),
        joined(word("("), inner, operators, inner, word(")")),
        joined(word("(", "not"), inner, word(")")),
        joined(word("("), inner, word("in", "{"), listed(inner), word("}", ")")),
        joined(word("("), inner, word("<-", "10.0.0.0/8", ")")),
    )


expressions = st.recursive(
    one(names) | one(strings) | one(numbers) | one(st.sampled_from(["true", "false", "null"])), compound, max_leaves=6
)
items = expressions | joined(expressions, word("as"), one(names))
plain = st.sampled_from(["a", "limits", "_from", "where2", "großväter", "e5", "s", "group.by", "a.limit"])
tables = one(names | st.lists(plain, min_size=2, max_size=3).map(".".join))
every = joined(word("every"), one(periods) | word("-"))
by = joined(word("by"), listed(items))
counts = one(st.sampled_from(["0", "5", "007", "999999999999999"]))
clauses = st.one_of(
    joined(word("where"), listed(expressions)),
    joined(word("select"), listed(items | word("*"))),
    joined(word("group"), st.one_of(word(), every, by, joined(every, by), joined(by, every))),
    joined(word("limit"), counts),
    joined(word("offset"), counts),
)
pragmas = joined(word("pragma"), tables, word(":"), one(strings | numbers | periods) | tables)
queries = joined(
    st.one_of(word(), joined(word("select"), listed(items))),
    word("from"),
    tables,
    st.lists(clauses, max_size=4).map(lambda lists: [token for tokens in lists for token in tokens]),
    st.lists(pragmas, max_size=2).map(lambda lists: [token for tokens in lists for token in tokens]),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A query with blanks, line ends, comments, or nothing where two tokens stay two without."""
    text = ""
    for token in draw(queries):
        apart = bool(text) and is_word(text[-1]) and is_word(token[0]) and not text.rsplit(maxsplit=1)[-1].isdigit()
        apart = apart or text.endswith("/")  # a comment begins with //
        gaps = [" ", "\n", " // limit 5 ' ` (\n", "\t"] if apart else ["", " ", "//from\n"]
        text += draw(st.sampled_from(gaps)) + token
    return text


def is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


@settings(max_examples=50, deadline=None)
@given(texts())
@example("from t limit 5where a")
@example("select*from t//x\nwhere a = 1e5limit 5offset 7")
def test_the_outline_of_a_query_is_the_parsers(text: str) -> None:
    check_against_the_parser(text)


@settings(max_examples=50, deadline=None)
@given(texts(), st.integers(0, 10**6), st.sampled_from(["", "'", '"', "`", "(", "}", "\\", "//", "\n", " limit ", "5"]))
def test_a_broken_query_has_an_outline_and_the_parsers_when_it_is_none_the_less_a_query(
    text: str, at: int, broken: str
) -> None:
    at %= len(text)
    text = text[:at] + broken + text[at + 1 :]
    outline(text)
    try:
        parse(text)
    except QueryError:
        return
    check_against_the_parser(text)


@pytest.mark.parametrize("piece", ["'", '\\"', "`", "(", "1e", "//", "1.", "limit ", "9"])
def test_a_long_text_takes_no_longer_than_its_length(piece: str) -> None:
    started = time.process_time()
    outline("from t " + piece * (300_000 // len(piece)))
    assert time.process_time() - started < 5


def test_a_query_in_one_line_keeps_what_is_in_quotes() -> None:
    text = """// the first  line
from t  // c
    where a = "b  // c"  ,\t c ->  'x  y' select `a  b`  // end
"""
    assert one_line(text) == "from t where a = \"b  // c\" , c -> 'x  y' select `a  b`"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from t where ", ("*",)),
        ("from t group by user select count() as n where ", ("user", "n")),
        ("from t select user as who where wh", ("who", "*")),
        ("from t select user, a group by ", ("user", "a", "*")),
        ("from t group every 1h by user select max(", ("eventdate", "user", "*")),
        ("from t select user, a group by user select ", ("user", "a", "*")),
        ("from t select a group by a select count() as n where ", ("a", "n")),
        ("from t group by a, b select a, count() as n where ", ("a", "n", "b")),
        ("from t group by a group by b select ", ("b", "a")),
    ],
)
def test_the_columns_that_the_last_clause_can_name(text: str, names: tuple[str, ...]) -> None:
    assert visible(text) == names


@pytest.mark.parametrize(
    ("text", "narrowed"),
    [
        ("from t", "from t select `a`, `b``c`"),
        ("from t where x = 'select' ", "from t where x = 'select' select `a`, `b``c`"),
        ("from t select *, n as m pragma x", "from t select *, n as m select `a`, `b``c` pragma x"),
        ("select *, n as m from t where n > 1", "from t where n > 1 select *, n as m select `a`, `b``c`"),
    ],
)
def test_a_query_for_all_columns_is_narrowed_to_some_of_its_answer(text: str, narrowed: str) -> None:
    assert selecting(text, ["a", "b`c"]) == narrowed


@pytest.mark.parametrize(
    ("text", "dated"),
    [
        ("from t", True),
        ("from t where a > 0, b select *, a as c", True),
        ("select eventdate, f(a) as b from t", True),
        ("from t select `eventdate`, a", True),
        ("from t select a, eventdate", False),
        ("from t select a", False),
        ("from t select b as eventdate, a", False),
        ("from t select f(eventdate) as eventdate, a", False),
        ("from t select (eventdate) as eventdate, a", False),
        ("from t select eventdate + 1 as eventdate", False),
        ("from t select eventdate - 1 as `eventdate` select *", False),
        ("from t select eventdate as a", False),
        ("from t group every 1h", False),
        ("from t group every 1h by a select eventdate", False),
        ("from t limit 5", False),
        ("from t offset 5 select eventdate", False),
    ],
)
def test_a_query_is_dated_if_its_rows_are_events_after_their_dates(text: str, dated: bool) -> None:
    assert is_dated(text) is dated
