"""The text of a query: where it is read from, with its variables filled in.

All commands that take a query use this module, so they accept queries in the same ways.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from svcctl.cli.inputs.text import STDIN, name
from svcctl.cli.inputs.text import read as read_text
from svcctl.cli.inputs.variables import filled, variables
from svcctl.errors import Advice, CommandLine, UsageError

_NAME = r"\w+(?:\.\w+)+"
"""A pattern for the name of a table, to recognise a table that was typed instead of a query."""
_FILE = r"@?([\w./~-]{1,200})"
_WAYS = "give it as an argument, on standard input, or with -F FILE"


def read(text: str | None, file: Path | None) -> str:
    """Return the query from an argument, a file or standard input.

    Standard input is read if the argument is `-`, or if no query is given and standard input is a pipe. Raises
    UsageError if the query is given twice, or not at all.
    """
    if text is None and file is None:
        piped = "" if sys.stdin.isatty() else read_text(STDIN, "the query")
        if not piped.strip():
            raise UsageError("no query given", hint=_WAYS)
        return piped
    if text is not None and file is not None:
        raise UsageError("the query is given twice, as an argument and with --file", hint=_WAYS)
    if file is not None:
        return _read(file)
    if (match := re.fullmatch(_FILE, str(text))) and Path(match[1]).is_file():
        raise UsageError(f"'{text}' is a file, not a query", hint=f"read the query from it: -F {match[1]}")
    if re.fullmatch(_NAME, str(text)):
        raise UsageError(f"'{text}' is not a query", hint=f"did you mean 'from {text}'?")
    return _read(STDIN) if text == STDIN else str(text)


def _read(source: Path | str) -> str:
    text = read_text(source, "the query")
    if not text.strip():
        raise UsageError(f"{name(source)} contains no query")
    return text


def given(text: str | None, file: Path | None, query_id: str | None, var: Sequence[str]) -> str | None:
    """Return the query's text with its variables filled in; None for a saved query."""
    if query_id is None:
        return fill(read(text, file), var)
    if var:
        raise UsageError(
            "--query-id runs a saved query, which has no variables",
            hint=Advice("keep the query in a file: ", CommandLine(f"svcctl query -F FILE --var {var[0]}")),
        )
    if text is not None or file is not None:
        raise UsageError("--query-id runs a saved query unchanged", hint="leave out the text and --file")
    return None


def fill(text: str, assignments: Sequence[str]) -> str:
    """Replace each `{{k}}` in a query with its value, as a string literal.

    `assignments` are the values of --var. If there are none, the text is unchanged. Otherwise, raises UsageError if a
    variable in the query has no value, or if a variable that has a value is not in the query.
    """
    values = variables(assignments)
    if not values:
        return text
    result, used = filled(text, values, quoted=True)
    if unused := values.keys() - used:
        raise UsageError(f"the query has no {{{{{min(unused)}}}}}")
    return result
