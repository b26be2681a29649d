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
        "Users with the most failed logins, and the number of their addresses",
        'from auth.all where result = "FAIL" group by user\n'
        "    select count() as n, hllppcount(srcIp) as addresses where n > 10",
    ),
    (
        "Successful and failed requests of the shop, every ten minutes",
        "from demo.ecommerce.data\n"
        '    select ifthenelse(statusCode >= 500, "error", "fine") as verdict\n'
        "    group every 10m by verdict select count() as n",
    ),
    (
        "Pages that took more than ten times their median time",
        'from demo.ecommerce.data group by peek(uri, re("^/[a-z]*")) as page\n'
        "    select median(timeTaken) as usual, max(timeTaken) as worst, count() as n\n"
        "    where n >= 100, worst > 10 * usual",
    ),
    (
        "Requests from Firefox and Chrome, but not from mobile devices, by country",
        'from demo.ecommerce.data where weakhas(userAgent, "firefox", "chrome")\n'
        '    where not (userAgent ->> "mobile")\n'
        "    group by country select count() as n, avg(bytesTransferred) / 1000 as kB",
    ),
    (
        "Addresses of a network that sent more than 1 MB to other networks in an hour",
        "from firewall.all where srcIp <- 10.0.3.0/24, not (dstIp <- 10.0.0.0/8)\n"
        "    group every 1h by srcIp select sum(bytesOut) as sent\n"
        "    where sent > 1000000",
    ),
    (
        "The average number of logins in each hour of the day (groups of groups)",
        "from auth.all group every 1h select count() as n\n"
        "    select hour(eventdate) as hour, n group by hour select avg(n) as logins",
    ),
    (
        "All requests to the local service itself",
        "from service.access // each request becomes an event",
    ),
)
"""Whole queries on the tables that every local service has."""

_QUERY = """\
A query names a table, and has clauses. The clauses run in the order in which
they are written. Each clause processes the rows of the clause before it.

  from TABLE                      reads the events of a table, such as auth.all
  where CONDITION, …              keeps the rows for which all conditions are
                                  true
  select EXPRESSION as NAME, …    sets the columns of the result (* for all
                                  columns)
  group every PERIOD by COLUMN, … makes one row for each period and each
                                  combination of values. COLUMN can be an
                                  expression
  limit N                         returns at most N rows
  offset N                        skips the first N rows
  pragma NAME: VALUE              is allowed, but has no effect
  // …                            a comment, to the end of the line

    from auth.all where result = "FAIL", not (user = "admin")
        select eventdate, user limit 5

The result has the columns of the last select. But a clause can use the columns
of all selects before it, and the columns of the table. If several columns have
the same name, a clause uses the latest of them. In this query, the where uses a
column of the table that is not in the select:

    from auth.all select lower(user) as who where result = "FAIL"

Every clause except from is optional and can be repeated. A select can also come
before from. Rows are sorted by the column eventdate, which is the date of the
event. Groups are sorted by their period and columns. Nulls come last. The time
range is not part of the query. Set the range with --from and --to.

"as NAME" is optional. Without it, a call has the name of its function, so
lower(user) is named lower. An expression such as n + 1 is named by its text.
Names are case-sensitive. A name has letters, digits and _. Several names can be
joined by dots, as in req.status. Put any other name, and any reserved word, in
back quotes: `two words`. The reserved words are"""

_GROUPS = """\
The columns after "by" are the keys of the group. A select after the group
computes aggregates, such as count(). Only aggregates can use the columns from
before the group. The result has the keys, and then the columns of the select.
But if the select names a key, the result has only the columns of the select. A
where after the group filters the groups.

With "every", the first key is eventdate, which is then the start of the period.
Periods without events are left out. A period is a number with s, m, h or d,
such as 30m. Periods are counted from 1970-01-01 in UTC. "every PERIOD" can also
come after the columns. "every -" means the same as no "every". To group by the
days of a time zone, write
by formatdate(eventdate, "yyyy-MM-dd", "Europe/Berlin").

    from demo.ecommerce.data
        group every 30m by method select count() as n, max(timeTaken)

Without "by" and "every", all rows are one group:

    from auth.all group select count() as n, min(eventdate) as since"""

_EXPRESSIONS = '''\
  "text" 'text'           strings, with the escapes \\" \\' \\\\ \\n \\t \\r and \\u0041
  12  -3  1.5  2e3        numbers. Whole numbers have the type int4 (4 bytes),
                          or int8 (8 bytes) if they are too large for int4.
                          All other numbers have the type float8
  10.0.0.1                an IP address
  true  false  null       constants
  ( … )  - …              parentheses, and the minus sign of a value. They are
                          evaluated first. The operators of each line below are
                          evaluated before the operators of the next line
  *  /  %                 multiply, divide (the result is a float8), remainder
                          of a division
  +  -                    add, subtract. + also joins strings
  =  !=  <  <=  >  >=     compare two values of the same kind, such as two
                          numbers or two dates. A number can also be compared
                          with a number in quotes. 200 <= x < 300 is allowed
  x -> "part"             x contains the part. ->> ignores case
  x ~ re("…")             x contains a match of a regular expression (RE2)
  x in {"a", "b"}         x equals one of the values
  x <- 10.0.0.0/8         the IP address x is in the network
  not    and    or        combine conditions. "not" is evaluated first, then
                          "and", then "or". A comma between conditions means
                          "and"'''

_NULLS = """\
Null means that there is no value.

  - If x is null, the comparison x = 1 is null, and not (x = 1) is null, too. A
    where keeps only rows for which the condition is true. So "where x = 1" and
    "where not (x = 1)" both leave out the rows in which x is null.
  - x = null is the same as isnull(x), and x != null is the same as
    isnotnull(x).
  - (false and null) is false, and (true or null) is true. But (true and null)
    and (false or null) are null.
  - The result of a calculation with null is null. These results are null, too:
    a division by zero, a whole number that does not fit int8, and the
    conversion of a text that cannot be converted.
  - If an argument of a function is null, the result is null, unless the
    description of the function says otherwise.
  - Aggregates skip nulls. If there are no values, count and hllppcount return
    0, and all other aggregates return null.
  - Rows in which a key is null form a group of their own."""

_SIGNATURES = """\
The first line of each function has the types of its arguments and of its
result. The types are timestamp, str, int4, int8, float8, bool and ip4. The
first line can also have these words and signs:

  int          int4 or int8
  number       int4, int8 or float8
  any          any type
  T            any type, but the same type for each T of the line
  U            any type, but the same type for each U of the line
  text         a literal string, such as "a"
  zone         a literal string with a time zone, such as "GMT+2"
  digits       a literal whole number, such as 5
  percent      a literal number, such as 99.9
  regex        a result of the function re
  glob         a result of the function nameglob
  ?            the argument is optional
  …            the argument can be repeated

The examples were run at 2024-05-06 07:08:09."""

_LIVE = f"""\
A query with --follow keeps running. Rows arrive as soon as they are stored. If
the query has one "group every", the groups of a period arrive when the period
is over. With other forms of group, or with several groups, the query needs
--to, and its groups arrive when the range is over. The clauses limit and offset
must come last.

When a period has ended, the service waits {LAG_TIME.default} for late events. The variable
{LAG_TIME.environment} of the service sets another time. At the end of the range, the
service waits only 2s. If an event is stored after this time, it is in no group,
because groups that were sent do not change. The service counts these late
events, unless a where before the group leaves them out. The number is in a note
of --follow, in "late" of the job ('svcctl job show ID -f json'), and in the
metrics. If you run the same query again after the end of the range, the result
includes the late events. A query without groups returns late events, too."""


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
                f"The text of a query has at most {size_text(MAX_BYTES)}. A query that takes too long is stopped. "
                "A query is refused before it runs if replaceall or + could make a text or a row of more than "
                f"{MAX_TEXT_CHARS:,} characters. For this rule, a value of a "
                f"column counts as {STORED_CHARS} characters."
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
