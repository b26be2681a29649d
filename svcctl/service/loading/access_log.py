"""SQL that splits the lines of access logs into parts such as host, time and status.

Usual lines are split at quotes, brackets and blanks. Unusual lines, such as lines with a backslash, are split with a
regular expression. For a usual line, both ways give the same parts.
"""

from __future__ import annotations

from svcctl.service.engines.duckdb.syntax import literal
from svcctl.service.loading.kinds import ACCESS_HOST

_GROUPS = (
    *("server", "host", "user", "ident", "user2", "time", "request", "status", "bytes", "referrer", "agent", "rest"),
)
"""The names of the parts of a line, in the order of the regular expression's groups."""
_REQUEST = r"^(\S+) (.*?)(?: (HTTP/\S+))?$"
_BACKSLASH_TAB_FEED_RETURN = (92, 9, 12, 13)
_STEPS = (
    """string_split(line, '"') AS parts""",
    "string_split(parts[1], '[') AS head, string_split(parts[3], ' ') AS numbers",
    "string_split(head[1], ' ') AS peer, string_split(head[2], '] ') AS clock",
)
"""SQL that splits a usual line in three steps: at quotes, then at `[` and blanks, and then at blanks and `]`.

Each step splits the results of the steps before it.
"""
_USUAL = " AND ".join(
    (
        *(f"NOT contains(line, chr({code}))" for code in _BACKSLASH_TAB_FEED_RETURN),
        "len(head) = 2 AND len(peer) = 4 AND peer[1] <> '' AND peer[2] = '-' AND peer[3] <> '' AND peer[4] = ''",
        "(NOT contains(peer[1], ':') AND NOT contains(peer[1], ',') "
        f"OR regexp_full_match(peer[1], {literal(ACCESS_HOST)}))",
        "len(clock) = 2 AND clock[1] <> '' AND clock[2] = '' AND NOT contains(clock[1], ']')",
        "(len(parts) = 3 AND len(numbers) = 3 "
        "OR len(parts) >= 7 AND parts[5] = ' ' AND len(numbers) = 4 AND numbers[4] = '')",
        "numbers[1] = '' AND strlen(numbers[2]) = 3",
        *(
            f"{number} BETWEEN '0' AND ':' AND TRY_CAST({number} AS BIGINT)::VARCHAR = {number}"
            for number in ("numbers[2]", "CASE WHEN numbers[3] = '-' THEN '0' ELSE numbers[3] END")
        ),
    )
)
"""An SQL condition that is true for usual lines, which are split without the regular expression."""
_SPLIT = {
    "server": "''",
    "host": "peer[1]",
    "user": "peer[3]",
    "ident": "''",
    "user2": "''",
    "time": "clock[1]",
    "request": "parts[2]",
    "status": "numbers[2]",
    "bytes": "numbers[3]",
    "referrer": "coalesce(parts[4], '')",
    "agent": "coalesce(parts[6], '')",
    "rest": "CASE WHEN len(parts) > 7 THEN array_to_string(parts[7:], '\"') ELSE coalesce(parts[7], '') END",
}


def hits(pattern: str) -> str:
    """Return SQL for the table `lines` with one more column, `hit`, which has the parts of each line.

    The names of the parts are in `_GROUPS`. `pattern` is the regular expression for unusual lines. If an unusual line
    does not match `pattern`, all parts of the line are empty.
    """
    table = "lines"
    for step in _STEPS:
        table = f"(SELECT *, {step} FROM {table})"
    split = ", ".join(f"'{group}': {sql}" for group, sql in _SPLIT.items())
    matched = f"regexp_extract(line, {literal(pattern)}, {list(_GROUPS)})"
    return f"(SELECT number, line, CASE WHEN {_USUAL} THEN {{{split}}} ELSE {matched} END AS hit FROM {table})"


def with_request(table: str) -> str:
    """Return SQL that adds a column `request` with the method, the URI and the protocol of each request.

    `table` is the SQL that `hits` has returned. The protocol of a request may be missing.
    """
    words = "len(words) = 3 AND words[1] <> '' AND words[3] LIKE 'HTTP/_%'"
    plain = " AND ".join(f"NOT contains(hit.request, chr({code}))" for code in _BACKSLASH_TAB_FEED_RETURN[1:])
    split = "{'method': words[1], 'uri': words[2], 'protocol': words[3]}"
    matched = f"regexp_extract(hit.request, {literal(_REQUEST)}, ['method', 'uri', 'protocol'])"
    return (
        f"(SELECT * EXCLUDE words, CASE WHEN {words} AND {plain} THEN {split} ELSE {matched} END AS request "
        f"FROM (SELECT *, string_split(hit.request, ' ') AS words FROM {table}))"
    )
