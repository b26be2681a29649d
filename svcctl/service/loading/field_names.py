"""The heading of files that name their fields in a comment, such as `#Fields: date time …`.

These files are W3C logs (`#Fields:`) and logs of Zeek (`#fields`). IIS, CloudFront and other servers write W3C logs. If
a later comment names other fields, the file is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.syntax import distinct
from svcctl.service.loading import csv
from svcctl.service.loading.limits import MAX_FIELDS
from svcctl.service.loading.lines import BOM

_COMMENTS = re.compile(rb"(?:#[^\r\n]*(?:\r?\n|\r|\Z)|[\r\n]+)*")
_DIRECTIVE = re.compile(r"(?m)^#(\w[\w-]*)(:[ \t]*|[^\w\r\n])(.*?)[ \t]*\r?$")


def heading(name: str, head: bytes) -> csv.CsvHeading:
    """Find the comment with the names of the fields. `head` has the first bytes of the file.

    Raises UsageError if no comment names the fields, or if there are too many fields.
    """
    start = len(BOM) if head.startswith(BOM) else 0
    comments = _COMMENTS.match(head, start)
    begin = comments.end() if comments else start
    directives = {
        match[1].casefold(): match for match in _DIRECTIVE.finditer(head[start:begin].decode(errors="replace"))
    }
    fields = directives.get("fields")
    if fields is None:
        raise UsageError(
            f"{name} has no line that names its fields",
            reason="no-field-names",
        )
    values = {word: match[3] for word, match in directives.items()}
    is_w3c = fields[2].startswith(":")
    if is_w3c:
        first_row = head[begin:].split(b"\n", 1)[0]
        between = "\t" if b"\t" in first_row or "\t" in fields[3] else "," if "," in fields[3] else " "
        cells = re.split(r"[ \t,]+", fields[3])
    else:
        between = _unescaped(values.get("separator", r"\x09"))
        cells = fields[3].split(between)
    if len(cells) > MAX_FIELDS:
        raise UsageError(f"{name} has more than {MAX_FIELDS} fields")
    names = tuple(distinct(cells))
    return csv.CsvHeading(
        names,
        csv.shape(between, is_quoted=is_w3c and between != "\t"),
        padded=False,
        begin=begin,
        line=1 + head[:begin].count(b"\n"),
        is_read=False,
        first=fields[0],
        fields_line=fields[0].encode(),
        null=("-",) if is_w3c else (values.get("unset_field", "-"), values.get("empty_field", "(empty)")),
        epochs=() if is_w3c else _epochs(names, values.get("types", "").split(between)),
    )


def _epochs(names: Sequence[str], types: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name, type_ in zip(names, types, strict=False) if type_ == "time")


def _unescaped(text: str) -> str:
    """Decode a separator, which may be written as `\\x09`."""
    return re.sub(r"\\x([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), text)
