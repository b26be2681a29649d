"""The variables of queries and of files for `apply`: each `{{k}}` in a text, and the values that --var gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from svcctl.errors import UsageError

_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}")
_QUOTED_VARIABLE = re.compile(rf"""(["']){_VARIABLE.pattern}\1""")


def variables(assignments: Sequence[str]) -> dict[str, str]:
    """Return the values in the options --var, by the names of the variables."""
    values: dict[str, str] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise UsageError(f"--var '{assignment}' is not of the form K=V")
        if key in values:
            raise UsageError(f"--var {key} is given twice")
        values[key] = value
    return values


def filled(text: str, values: Mapping[str, str], *, quoted: bool) -> tuple[str, set[str]]:
    """Replace each `{{k}}` in a text with its value. Returns the new text, and the names that were in the text.

    With `quoted`, as in a query, the value is inserted as a quoted literal.
    """
    used = set(_VARIABLE.findall(text))
    if missing := used - values.keys():
        raise UsageError(f"{{{{{min(missing)}}}}} has no value", hint=f"give it with --var {min(missing)}=…")
    if quoted and (literal := _QUOTED_VARIABLE.search(text)):
        name = literal[2]
        raise UsageError(
            f"{{{{{name}}}}} becomes a text in quotes, so it must not be in quotes itself",
            hint=f"leave out the quotes around {{{{{name}}}}}",
        )
    return _VARIABLE.sub(lambda match: _quoted(values[match[1]]) if quoted else values[match[1]], text), used


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'
