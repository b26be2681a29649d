"""The IDs of jobs on a command line: arguments, or, for `-`, IDs listed on standard input.

Standard input is IDs separated by blanks or lines, or a list of jobs as svcctl prints it: csv, tsv, a table, JSON or a
JSON object per line. Of a list, its column `id` is read.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from typing import Any

from svcctl.cli.inputs import text
from svcctl.errors import UsageError

_RULE = re.compile(r"-+(  -+)*\s*")
_BLOCK = re.compile(r"row \d+\s*")


def read(given: Iterable[str]) -> list[str]:
    """The given IDs, each once; those that standard input lists replace `-`."""
    ids = [one for word in given for one in (listed(text.read(word, "the list")) if word == text.STDIN else [word])]
    return list(dict.fromkeys(ids))


def listed(source: str) -> list[str]:
    """The IDs in a text. UsageError for a list without a column of IDs."""
    source = source.lstrip()
    first, _, rest = source.partition("\n")
    second = rest.partition("\n")[0]
    if first[:1] in ("{", "["):
        return _in_json(source)
    if _RULE.fullmatch(second):
        return _in_table(first, second, rest.split("\n")[1:])
    for delimiter in ("\t", ","):
        if delimiter in first:
            return _in_csv(source, delimiter, first)
    if _BLOCK.fullmatch(first):
        raise _without_ids(first)
    words = source.split()
    return words[1:] if words[:1] == ["id"] else words


def _in_csv(source: str, delimiter: str, first: str) -> list[str]:
    rows = csv.reader(io.StringIO(source, newline=""), delimiter=delimiter)
    try:
        at = next(rows).index("id")
        return [row[at] for row in rows if len(row) > at and row[at]]
    except (ValueError, csv.Error):
        raise _without_ids(first) from None


def _in_table(heading: str, rule: str, lines: Iterable[str]) -> list[str]:
    for column in re.finditer("-+", rule):
        if heading[column.start() : column.end()].strip() == "id":
            return [cell for line in lines if (cell := line[column.start() : column.end()].strip())]
    raise _without_ids(heading)


def _in_json(source: str) -> list[str]:
    """The IDs of one JSON document, an object or a list of them, or of an object per line."""
    try:
        documents = [json.loads(source)]
    except ValueError:
        documents = list(map(_decoded, filter(str.strip, source.split("\n"))))
    found = [one for document in documents for one in (document if isinstance(document, list) else [document])]
    for one in found:
        if not isinstance(one, dict) or not one.get("id"):
            raise _without_ids(json.dumps(one, ensure_ascii=False))
    return [str(one["id"]) for one in found]


def _decoded(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        raise _without_ids(line) from None


def _without_ids(line: str) -> UsageError:
    shown = line if len(line) <= 60 else line[:59] + "…"
    return UsageError(
        f"standard input is a list without job IDs: '{shown}'",
        hint="pipe IDs, for example from: svcctl job list --ids",
    )
