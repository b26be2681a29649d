"""Writes the page of `svcctl help query-language` from the tables of the language.

`.ci/generate` keeps the page in svcctl/cli/help, since the client prints it where the language is not installed. A test
compares the two and runs every example.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from textwrap import wrap

from svcctl.service.language.functions import SAMPLE_ROWS, SECTIONS, Function
from svcctl.service.language.parser import MAX_BYTES
from svcctl.service.language.text_bound import MAX_TEXT_CHARS, STORED_CHARS
from svcctl.service.language.tree import RESERVED
from svcctl.service.settings import LAG_TIME
from svcctl.words import size_text

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
        "Browsers, ignoring case",
        'from demo.ecommerce.data where weakhas(userAgent, "firefox", "chrome")\n'
        '    where not (userAgent ->> "mobile")\n'
        "    group by country select count() as n, avg(bytesTransferred) / 1000 as kB",
    ),
    (
        "Traffic that left a network, by the hour",
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
        "Requests to the local service itself; --follow prints new ones as they arrive",
        "from service.access // each request becomes an event",
    ),
)
"""Whole queries on the tables that every local service has."""

_QUERY = """\
A query names a table, and then processes the events of the table clause by
clause, in the order of the text. Each clause works on the rows of the clause
before.

  from TABLE                      the table: names with dots, case-sensitive
  where CONDITION, …              keeps the rows for which all conditions are
                                  true
  select EXPRESSION as NAME, …    the columns, * for all of them
  group every PERIOD by COLUMN, … one row per period and per value of the
                                  columns (or expressions)
  limit N    offset N             returns at most N rows; skips the first N
  pragma NAME: VALUE              accepted and ignored
  // …                            a comment, to the end of the line

    from auth.all where result = "FAIL", not (user = "admin")
        select eventdate, user limit 5

A clause finds a name among the columns of the last select. If the name is not
there, it is searched in the selects before, back to the last group or to the
table. The result has the columns of the last select:

    from auth.all select lower(user) as who where result = "FAIL"

Every clause except from is optional and can be repeated; select can also come
before from. Rows are in the order of eventdate, and groups in the order of
their keys. Nulls come last. The time range is not part of the query: give the
range with --from and --to.

A column without "as NAME" is named after the column, the function, or the text
of the expression. Names are case-sensitive. A name has letters, digits and _.
Several names can be joined by dots, as in req.status. Put any other name, and
any reserved word, in back quotes: `two words`. The reserved words are"""

_GROUPS = """\
The columns after "by" are the keys of the group. With "every", eventdate is the
start of the period; periods without events are left out. A select after the
group computes aggregates. The keys come first in the result, unless the select
names a key. A where after the group filters the groups. A period is a number
of s, m, h or d, counted from 1970-01-01 in UTC. "every" can also come last.
"every -" means a group without a period. To group by the days of a time zone,
group by a text: formatdate(eventdate, "yyyy-MM-dd", "Europe/Berlin").

    from demo.ecommerce.data
        group every 30m by method select count() as n, max(timeTaken)

Without keys and period, all rows are one group:

    from auth.all group select count() as n, min(eventdate) as since"""

_EXPRESSIONS = '''\
  "text" 'text'           with the escapes \\" \\' \\\\ \\n \\t \\r and \\u0041
  12  -3  1.5  2e3        whole numbers are int4, or int8 if they are too large
                          for that; others are float8
  10.0.0.1                an address; true, false; null
  ( … )  - …              parentheses and the sign bind closest, and then
  *  /  %                 multiply, divide (always a float8), remainder of a
                          division
  +  -                    add, subtract; + also joins strings
  =  !=  <  <=  >  >=     compare two numbers, strings, dates, …; 200 <= x < 300
                          is a chain. Compared with a number, "404" is 404
  x -> "part"             contains; ->> ignores case
  x ~ re("…")             contains a match of a regular expression (RE2 syntax)
  x in {"a", "b"}         x equals one of the values
  x <- 10.0.0.0/8         an address is in a network
  not    and    or        combine conditions, and bind in this order; a comma
                          between conditions is "and"'''

_NULLS = """\
Null means that there is no value.

  - A comparison or test of null is neither true nor false, and its negation is
    not true either: where x = 1 and where not (x = 1) both leave out the rows
    in which x is null.
  - x = null and x != null test whether there is a value, like isnull(x) and
    isnotnull(x).
  - If one side of "and" or "or" decides, null on the other side does not
    matter: false and null is false, true or null is true. Otherwise the result
    is null. A where keeps only rows for which the condition is true.
  - The result of a calculation with null is null. These results are null, too:
    a division by zero, a whole number that does not fit int8, and the
    conversion of a text that cannot be converted.
  - A function returns null for null unless its description says otherwise.
  - Aggregates skip nulls. Without any values, count and hllppcount return 0,
    and the others null.
  - Rows with null in a key form a group."""

_SIGNATURES = """\
The first line of each function has the types of its arguments and of its
result: timestamp, str, int4, int8, float8, bool, ip4; int (int4 or int8),
number (int4, int8 or float8); any; T and U (any type, but the same in the whole
line). An argument named text, digits (5) or percent (95 or 99.9) must be a
literal, not an expression. "?" marks an optional argument, and "…" an argument
that can be repeated. The examples were run at 2024-05-06 07:08:09."""

_LIVE = f"""\
A query with --follow keeps running. Rows arrive as soon as they are stored. The
groups of a single "group every" arrive when their period is over. Other groups
would never be complete, so they are refused. Limits and offsets must come last.

A period stays open for late events for {LAG_TIME.default} after its end. The variable
{LAG_TIME.environment} of the service sets another length. If the range ends with the
period, the period stays open for 2s. An event that is stored later is in no
group, because groups that were sent do not change. Events that are too late are
counted if they pass the where clauses before the group: in a note of --follow,
in "late" of the job's object ('svcctl job show ID -f json'), and in the
service's metrics. If you run the same query again when the range is over, it
includes these events. Rows without a group are never too late."""


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
        ("Continuous queries", _LIVE),
        (
            "Limits",
            _wrapped(
                f"A query has at most {size_text(MAX_BYTES)}. A query that takes too long is stopped. A query is "
                "refused before it runs if replaceall or + could make a text or a row of more than "
                f"{MAX_TEXT_CHARS:,} characters; a value of a column counts as {STORED_CHARS} characters."
            ),
        ),
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
    rows = [names, *(tuple("null" if value is None else str(value) for value in row) for row in SAMPLE_ROWS)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "The examples use these rows:\n\n" + "\n".join(f"  {line}" for line in lines)


def _wrapped(text: str, first: str = "", rest: str | None = None) -> str:
    later = first if rest is None else rest
    return "\n".join(wrap(text, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False))


def _indented(query: str) -> str:
    return query.replace("\n", "\n    ")


if __name__ == "__main__":
    sys.stdout.write(page())
