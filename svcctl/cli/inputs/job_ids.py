"""The IDs of jobs on a command line. Each argument is an ID, or `-` for the IDs on standard input.

Standard input has one ID per line, such as the output of `svcctl job list --ids`. Standard input may also be csv or tsv
with a column `id`, such as the output of `svcctl job list` in a pipe.
"""

from __future__ import annotations

import io
from collections.abc import Iterable

from svcctl.cli.inputs import text
from svcctl.errors import Advice, CommandLine, UsageError


def read(arguments: Iterable[str]) -> list[str]:
    """Return the IDs without duplicates. The argument `-` is replaced with the IDs on standard input."""
    ids = [
        job_id
        for word in arguments
        for job_id in (listed(text.read(word, "the list")) if word == text.STDIN else [word])
    ]
    return list(dict.fromkeys(ids))


def listed(source: str) -> list[str]:
    """Return the IDs in a text. Raises UsageError for a list without a column of IDs."""
    source = source.lstrip()
    first = source.partition("\n")[0]
    delimiter = next((separator for separator in ("\t", ",") if separator in first), None)
    if delimiter is not None:
        return _in_column(source, delimiter, first)
    lines = list(filter(None, map(str.strip, source.split("\n"))))
    for line in lines:
        if len(line.split()) > 1:  # a table is refused, because its words could be names of other jobs
            raise _without_ids(line)
    return lines[1:] if lines[:1] == ["id"] else lines


def _in_column(source: str, delimiter: str, first: str) -> list[str]:
    import csv

    rows = csv.reader(io.StringIO(source, newline=""), delimiter=delimiter)
    try:
        at = next(rows).index("id")
        return [row[at] for row in rows if len(row) > at and row[at]]
    except (ValueError, csv.Error):
        raise _without_ids(first) from None


def _without_ids(line: str) -> UsageError:
    shown = line if len(line) <= 60 else line[:59] + "…"
    return UsageError(
        f"standard input is a list without job IDs: '{shown}'",
        hint=Advice("pipe IDs, for example from: ", CommandLine("svcctl job list --ids")),
    )
