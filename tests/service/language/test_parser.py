"""Text to tree and back, and what is said about text that is no query."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.query_text import to_text

from svcctl.service.language import RESERVED, QueryError, Type, parse, tree
from svcctl.service.language.parser import MAX_BYTES

ERRORS = {
    "": "line 1, column 1: unexpected end of query, expected 'from' or 'select'",
    "frm x": "line 1, column 1: unexpected 'frm' (did you mean 'from'?)",
    "FROM x": "line 1, column 1: unexpected 'FROM' (write from x)",
    "from t where": "line 1, column 13: unexpected end of query, expected an expression",
    "from t\nwhere (a": "line 2, column 9: unexpected end of query, expected ')'",
    "from t limit x": "line 1, column 14: unexpected 'x', expected a number",
    "from t select a, where, b": "line 1, column 18: unexpected 'where', expected '*' or an expression"
    " (where is a reserved word; as a name, write it in back quotes: `where`)",
    "from t where a = {{c}}": "line 1, column 18: unexpected '{' ({{name}} needs a value)",
    "from t | where a": "line 1, column 8: unexpected '|'"
    " (there are no pipes: the clauses follow one another, as in where … group by … select …)",
    "from t where a = “x”": "line 1, column 18: unexpected '“' (write straight quotes: \"…\")",
    "from t Sort n": "line 1, column 8: unexpected 'Sort' (a query does not sort: sort the rows that it returns)",
    "show tables": "line 1, column 1: unexpected 'show' (a query cannot list tables: it reads the rows of one table)",
    "from t where a ! b": "line 1, column 16: unexpected character '!'",
    "from t where a = 'x": r"line 1, column 18: the string is not closed on its line (a line break is written \n)",
    r"from t where a = 'x\q'": r"line 1, column 20: unknown escape \q"
    r""" (write \\q; escapes are \" \' \\ \n \t \r \u0041)""",
    r"from t where a = '\ud800'": "line 1, column 18: half of a surrogate pair is not a character",
    r"from t where a = '\u0000'": "line 1, column 18: a string cannot hold the character U+0000",
    "from t where a = '\0'": "line 1, column 19: a query cannot hold the character U+0000",
    "from t where a = '\ud800'": "line 1, column 19: half of a surrogate pair is not a character",
    "from t where a in (1)": "line 1, column 19: unexpected '(' (write from t where a in {1})",
    "from t where a = 9223372036854775808": "line 1, column 18: the number is too large: 9223372036854775808",
    "from t where a = 1e999": "line 1, column 18: the number is too large: 1e999",
    "from t where a = 10.0.0.256": "line 1, column 18: 10.0.0.256 is not an address (each of its numbers is 0 to 255)",
    "from t where a <- 10.0.0.0/33": "line 1, column 19: 10.0.0.0/33 is not a network (write 10.0.0.0/8)",
    "from t group every 0m": "line 1, column 20: a period is at least 1s",
    f"from t a{', a' * 21}": "line 1, column 8: unexpected 'a', expected 'group', 'limit', 'offset', 'pragma',"
    " 'select', 'where' or the end of the query",
    "from t group every 5m by a every 10m": "line 1, column 34: the group already has another period"
    " (write every once)",
    "from t group every 5m by a every -": "line 1, column 34: the group already has another period (write every once)",
    "from t group every - 5m": "line 1, column 22: unexpected '5m', expected 'by', 'every', 'group', 'limit', 'offset',"
    " 'pragma', 'select', 'where' or the end of the query",
    "from t every 5m": "line 1, column 8: unexpected 'every' (write group every 5m)",
    "from t where a. b": "line 1, column 15: unexpected '.' (write from t where a.b)",
    "from t where `a`.b.1": "line 1, column 17: unexpected '.' (write a dotted name without blanks; if a part needs"
    " back quotes, put the whole name in them: `a.b c`)",
    "from t where a > .5": "line 1, column 18: unexpected '.' (write from t where a > 0.5)",
    "from t where a.b[0] = 1": "line 1, column 17: unexpected '[' (an item of JSON text is"
    ' jsonparse(text, "[0]"); several values are in braces: x in {1, 2})',
    "from t a.x, b": "line 1, column 8: unexpected 'a.x' (write select a.x, b)",
    "from ``": "line 1, column 6: the quoted name is not closed on its line, or is empty",
}

CANONICAL = {
    "select a from t where b": "from t where b select a",
    "select count() from t where b group by c where d": "from t where b group by c select count() where d",
    "from t where a /= 1, (b and (c)) or d": "from t where a != 1, b and c or d",
    "from t where a and (b and c)": "from t where a and (b and c)",
    "from t where not (not a = b)": "from t where not not a = b",
    "from t where (a < b) < c, a < b < c": "from t where (a < b) < c, a < b < c",
    "from t where a <- // the office\n // (all of it)\n 10.0.0.0/8": "from t where a <- 10.0.0.0/8",
    "from t where a <-5, a <-10.0.0.0/8, a <- 10.0.0.1": "from t where a < -5, a <- 10.0.0.0/8, a <- 10.0.0.1",
    "from t select -(5), - - 5, -(-a), 1 -2, a - (b - c)": "from t select -5, 5, --a, 1 - 2, a - (b - c)",
    "from t select (a - b) - c, (a + b) * -c": "from t select (a - b) - c, (a + b) * -c",
    "from t select -9223372036854775808 as x": "from t select -9223372036854775808 as x",
    "from `a-b.c` select `group`, `in`(1, 2), `a``b`": "from `a-b.c` select `group`, `in`(1, 2), `a``b`",
    "select `req.by` from a.b where a.b=1.5, where.x in {c.d}": "from a.b where a.b = 1.5, where.x in {c.d}"
    " select req.by",
    "from t group by lower(a.b) as x.y every 5m select sum(a.b.c), -a.b": "from t group every 5m by lower(a.b) as x.y"
    " select sum(a.b.c), -a.b",
    "from t select `a.b c`, `a..b`, `a.1`, `.a`, `a.`, `a.b.`": "from t select `a.b c`, `a..b`, `a.1`, `.a`, `a.`,"
    " `a.b.`",
    "from t group every 60m by a every 1h": "from t group every 1h by a",
    "from t group every 90s": "from t group every 90s",
    "from t group every - by a": "from t group by a",
    "from t group by a every - every -": "from t group by a",
    "from t group every - select count()": "from t group select count()",
    "from t // all of it\n limit 10 offset 5": "from t limit 10 offset 5",
    r"""from t where 'it\'s "q" \\ \n \u00e9 \ud83d\ude00 //'""": 'from t where "it\'s \\"q\\" \\\\ \\n é 😀 //"',
    'from t pragma comment.user:"ops" pragma n: 5': 'from t pragma comment.user: "ops" pragma n: "5"',
    "from t where x in {1, 2.5, 1e20, null, true}": "from t where x in {1, 2.5, 1e+20, null, true}",
}


@pytest.mark.parametrize(("text", "message"), ERRORS.items())
def test_a_text_that_is_no_query_is_refused_with_place_and_reason(text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_the_printer_writes_the_canonical_text(text: str, canonical: str) -> None:
    assert to_text(parse(text)) == canonical
    assert parse(canonical) == parse(text)


def test_an_error_tells_its_parts() -> None:
    with pytest.raises(QueryError) as caught:
        parse("from t\n  wher a")
    error = caught.value
    assert (error.message, error.line, error.column, error.hint, error.expected) == (
        "unexpected 'wher'",
        2,
        3,
        "did you mean 'where'?",
        (),
    )
    with pytest.raises(QueryError) as caught:
        parse("from t limit x")
    assert caught.value.expected == ("a number",)


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_a_reserved_word_is_a_column_when_it_is_quoted(word: str) -> None:
    query = parse(f"from t select `{word}`")
    assert query.clauses == (tree.Select((tree.Item(tree.ColumnRef(word)),)),)


def test_equality_of_literals_looks_at_their_type() -> None:
    one, true, real = (parse(f"from t where x = {text}") for text in ("1", "true", "1.0"))
    assert one != true
    assert one != real


@pytest.mark.parametrize("text", ["not ", "-", "f(", "1 in {", "2 * (1 + "])
def test_nesting_is_refused_however_deep_it_is(text: str) -> None:
    closing = {"f(": ")", "1 in {": "}", "2 * (1 + ": ")"}.get(text, "")
    with pytest.raises(QueryError, match="nested too deep"):
        parse(f"from t where {text * 5000}a{closing * 5000}")


def test_a_text_is_refused_by_its_size_before_it_is_read() -> None:
    with pytest.raises(QueryError, match="the query has 256 kB, more than 256 kB"):
        parse("from t where " + "(" * MAX_BYTES)


def test_flat_chains_and_redundant_parentheses_are_not_deep() -> None:
    assert len(parse("from t where " + " or ".join(["a"] * 20_000)).clauses) == 1
    assert parse("from t where " + "(" * 20_000 + "a" + ")" * 20_000) == parse("from t where a")


names = st.one_of(
    st.sampled_from(["a", "eventdate", "group", "é", "x y", "a`b", "a.b", "1a"]),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n\r\0"), min_size=1, max_size=5),
)
strings = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=8)
literals = st.one_of(
    strings.map(lambda text: tree.Literal(Type.STR, text)),
    st.integers(-(2**31), 2**31 - 1).map(lambda value: tree.Literal(Type.INT4, value)),
    st.integers(2**31, 2**63 - 1).map(lambda value: tree.Literal(Type.INT8, value)),
    st.integers(-(2**63), -(2**31) - 1).map(lambda value: tree.Literal(Type.INT8, value)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: tree.Literal(Type.FLOAT8, value)),
    st.booleans().map(lambda value: tree.Literal(Type.BOOL, value)),
    st.integers(0, 2**32 - 1).map(lambda value: tree.Literal(Type.IP4, value)),
    st.just(tree.Literal(None, None)),
)
NUMBERS = (Type.INT4, Type.INT8, Type.FLOAT8)


def _links(inner: st.SearchStrategy[tree.Expr], operators: str, most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    link = st.tuples(st.sampled_from(operators.split()), inner)
    return st.lists(link, min_size=1, max_size=most).map(tuple)


def _compound(inner: st.SearchStrategy[tree.Expr]) -> st.SearchStrategy[tree.Expr]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(tree.Call, names, st.lists(inner, max_size=3).map(tuple)),
        inner.filter(lambda e: not (isinstance(e, tree.Literal) and e.type in NUMBERS)).map(tree.Minus),
        st.builds(tree.Arithmetic, inner, _links(inner, "+ -")),
        st.builds(tree.Arithmetic, inner, _links(inner, "* / %")),
        st.builds(tree.Comparison, inner, _links(inner, "= != < <= > >=")),
        st.builds(tree.Comparison, inner, _links(inner, "-> ->> ~", 1)),
        st.builds(tree.Membership, inner, several),
        st.builds(tree.Inside, inner, st.integers(0, 2**32 - 1), st.integers(0, 32)),
        st.builds(tree.Not, inner),
        st.builds(tree.Logic, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3).map(tuple)),
    )


expressions = st.recursive(st.one_of(literals, names.map(tree.ColumnRef)), _compound, max_leaves=8)
items = st.builds(tree.Item, expressions, st.none() | names)
counts = st.integers(0, 10**15)
clauses = st.one_of(
    st.builds(tree.Where, st.lists(expressions, min_size=1, max_size=2).map(tuple)),
    st.builds(tree.Select, st.lists(items | st.just(tree.Star()), min_size=1, max_size=3).map(tuple)),
    st.builds(tree.Group, st.none() | st.integers(1, 10**6), st.lists(items, max_size=2).map(tuple)),
    st.builds(tree.Limit, counts),
    st.builds(tree.Offset, counts),
)
queries = st.builds(
    tree.Query,
    names,
    st.lists(clauses, max_size=3).map(tuple),
    st.lists(st.tuples(names, strings), max_size=2).map(tuple),
)


@settings(max_examples=80, deadline=None)
@given(queries)
def test_reading_what_the_printer_wrote_gives_the_same_tree(query: tree.Query) -> None:
    assert parse(to_text(query)) == query


@settings(max_examples=80, deadline=None)
@given(
    st.text(
        st.sampled_from("from t where select group by a b ( ) { } , = < - > \" ' ` \\ 1 . / * \n").map(str), max_size=60
    )
)
def test_any_text_is_a_query_or_a_query_error(text: str) -> None:
    try:
        query = parse("from t " + text)
    except QueryError as error:
        place = (error.line, error.column)
    else:
        place = (1, 1)
        assert parse(to_text(query)) == query
    assert min(place) >= 1
