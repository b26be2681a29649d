"""The page of `svcctl help query-language`, written from the language's own tables.

The page is kept as a file in svcctl/pages, since the client prints it where the language itself is not installed. A
test holds the two equal and runs every example. Write the file anew with

    python -m svcctl.service.language.page > svcctl/pages/query-language.txt
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from textwrap import wrap

from svcctl.service.language.functions import SAMPLE, SECTIONS, Function
from svcctl.service.language.parser import MAX_BYTES, RESERVED

WIDTH = 80

EXAMPLES = (
    ("The last failed logins", 'from auth.all where result = "FAIL" select eventdate, user, srcIp, reason'),
    (
        "Who failed most, and from how many addresses",
        'from auth.all where result = "FAIL" group by user\n'
        "    select count() as n, hllppcount(srcIp) as addresses where n > 10",
    ),
    (
        "Requests and errors of the shop every ten minutes",
        "from demo.ecommerce.data\n"
        '    select ifthenelse(statusCode >= 500, "error", "fine") as verdict\n'
        "    group every 10m by verdict select count() as n",
    ),
    (
        "The slow pages",
        'from demo.ecommerce.data group by peek(uri, re("^/[a-z]*")) as page\n'
        "    select median(timeTaken) as usual, max(timeTaken) as worst, count() as n\n"
        "    where n >= 100, worst > 10 * usual",
    ),
    (
        "Browsers, however their names are written",
        'from demo.ecommerce.data where weakhas(userAgent, "firefox", "chrome")\n'
        '    where not (userAgent ->> "mobile")\n'
        "    group by country select count() as n, avg(bytesTransferred) / 1000 as kB",
    ),
    (
        "What left one network for another, by the hour",
        "from firewall.all where srcIp <- 10.0.3.0/24, not (dstIp <- 10.0.0.0/8)\n"
        "    group every 1h by srcIp select sum(bytesOut) as sent\n"
        "    where sent > 1000000",
    ),
    (
        "Busy hours of the day, from groups of groups",
        "from auth.all group every 1h select count() as n\n"
        "    select hour(eventdate) as hour, n group by hour select avg(n) as logins",
    ),
    (
        "The requests to the local service itself; --follow shows them as they come",
        "from service.access // each request becomes an event",
    ),
)
"""Whole queries on the tables that every local service has."""

_QUERY = """\
A query names a table and what to do with its events, clause by clause, in the
order they are written: each clause works on the rows that the one before it
left.

  from TABLE                      the table: names with dots, case-sensitive
  where CONDITION, …              keeps the rows for which all conditions are
                                  true
  select EXPRESSION as NAME, …    the columns, * for all there are; later
                                  clauses can use them
  group every PERIOD by COLUMN, … one row per period and per value of the
                                  columns (or expressions)
  limit N    offset N             at most N rows; without the first N
  pragma NAME: VALUE              accepted and ignored
  // …                            a comment, to the end of the line

    from auth.all where result = "FAIL", not (user = "admin")
        select eventdate, user limit 5

Every clause but from may be left out, repeated and combined; select may also
stand before from. Rows come in the order of eventdate, groups in the order of
their keys, nulls last. The range of dates is no part of the query: it is --from
and --to.

A column without "as NAME" is called like the column, like the function, or like
its text. Names are case-sensitive. A name that holds other characters than
letters, digits and _, or that is a reserved word, is written in back quotes:
`two words`. The reserved words are"""

_GROUPS = """\
A group has the columns it is grouped by, and after "every" the start of the
period in eventdate; periods without events are left out. A select behind it
computes aggregates, and brings the keys along in front unless it names one of
them. A where behind it filters the groups. A period is a number of s, m, h or
d, counted from 1970-01-01 in UTC; "every" may also stand last.

    from demo.ecommerce.data
        group every 30m by method select count() as n, max(timeTaken)

With neither keys nor period there is one group of all rows:

    from auth.all group select count() as n, min(eventdate) as since"""

_EXPRESSIONS = '''\
  "text" 'text'           with the escapes \\" \\' \\\\ \\n \\t \\r and \\u0041
  12  -3  1.5  2e3        whole numbers are int4, or int8 where they do not fit;
                          the others float8
  10.0.0.1                an address; true, false; null
  ( … )  - …              grouping and the sign, which bind closest, then
  *  /  %                 multiply, divide (always a float8), the rest of a
                          division
  +  -                    add, subtract; + also joins strings
  =  !=  <  <=  >  >=     compare two numbers, strings, dates, …; 200 <= x < 300
                          is a chain
  x -> "part"             contains; ->> does in any case
  x ~ re("…")             holds a match of a regular expression (RE2's syntax)
  x in {"a", "b"}         equals one of them
  x <- 10.0.0.0/8         an address is in a network
  not    and    or        of conditions, in this order; a comma between
                          conditions is "and"'''

_NULLS = """\
Null means that there is no value.

  - A comparison or test of null is neither true nor false, and its negation is
    not true either: where x = 1 and where not (x = 1) both leave out the rows
    in which x is null.
  - x = null and x != null ask whether there is a value, as isnull(x) and
    isnotnull(x) do.
  - "and" and "or" know the answer where one side is enough: false and null is
    false, true or null is true. The rest is null, and where keeps only what is
    true.
  - Calculating with null gives null, and so do a division by zero, a whole
    number beyond int8, and a text that is not what a conversion expects.
  - A function of null is null unless it says otherwise.
  - Aggregates skip nulls. Over no values at all count and hllppcount are 0, and
    the others null.
  - Null is a group of its own."""

_SIGNATURES = """\
A line tells what a function takes and gives, in types: timestamp, str, int4,
int8, float8, bool, ip4; int (int4 or int8), number (any of the three); any; T
and U (any type, the same wherever it stands). A text or digits is written out
in the query, not computed. "?" may be left out and "…" repeated. The examples
were computed at 2024-05-06 07:08:09."""

_LIVE = """\
A query with --follow goes on without an end. Its rows come as they are stored,
and the groups of one "group every" when their period is over; other groups
would never be complete and are refused. Limits and offsets stand last in it."""


def page() -> str:
    """The whole page: plain text, at most WIDTH columns wide."""
    aggregates = list(SECTIONS)[-1]
    parts = [
        ("The query language", f"{_QUERY}\n{_wrapped(', '.join(sorted(RESERVED)) + '.')}"),
        ("Groups", _GROUPS),
        ("Expressions", _EXPRESSIONS),
        ("Null", _NULLS),
        ("Examples", "\n\n".join(f"{title}:\n\n    {_indented(query)}" for title, query in EXAMPLES)),
        ("Functions", _SIGNATURES),
        *((f"Functions: {title}", _functions(rows)) for title, rows in SECTIONS.items() if title != aggregates),
        (f"Functions: {aggregates}", f"{_sample()}\n\n{_functions(SECTIONS[aggregates])}"),
        ("Queries that go on", _LIVE),
        ("Limits", f"A query has at most {MAX_BYTES // 1024} KiB. One that needs too long is stopped."),
    ]
    return "\n\n".join(f"{title}\n\n{text}" for title, text in parts) + "\n"


def _functions(functions: Iterable[Function]) -> str:
    return "\n\n".join("\n".join(_function(each)) for each in functions)


def _function(function: Function) -> Iterator[str]:
    name = f"`{function.name}`" if function.name in RESERVED else function.name
    calls = (signature.rpartition("-> ") for signature in function.signatures)
    yield _wrapped("; ".join(f"{name}({takes.strip()}) -> {gives}" for takes, _, gives in calls), "  ", "    ")
    yield _wrapped(function.meaning, "      ")
    yield f"      {function.example}  is  {_written(function.result)}"


def _written(value: str | float | datetime | None) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ", "milliseconds")
    return json.dumps(value, ensure_ascii=False)


def _sample() -> str:
    names = ("eventdate", "user", "status", "seconds")
    rows = [names, *(tuple("null" if value is None else str(value) for value in row) for row in SAMPLE)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "The examples are over these rows:\n\n" + "\n".join(f"  {line}" for line in lines)


def _wrapped(text: str, first: str = "", rest: str | None = None) -> str:
    later = first if rest is None else rest
    return "\n".join(wrap(text, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False))


def _indented(query: str) -> str:
    return query.replace("\n", "\n    ")


if __name__ == "__main__":
    sys.stdout.write(page())
