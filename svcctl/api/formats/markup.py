"""Readers of xml and xls. The client does not parse these formats, but checks that an answer is complete.

The last bytes of an answer are held back until the end of the document is found. An xml document ends with the closing
tag of its root, and white space may follow. A spreadsheet is a zip file, which ends with an end record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape

from svcctl.api.formats.progress import BLOCK_BYTES, Delivered
from svcctl.api.refusals import Refusal

_PROLOGUE = rb"(?s)\s+|\xef\xbb\xbf|<\?.*?\?>|<!--.*?-->|<![A-Z][^>]*>"
_ROOT = rb"<([^\s/><!?]+)[^>]*?(/?)>"
_ERROR = rb"(?s)<error\b([^>]*)>((?:(?!<error\b).)*?)</error>\s*</[^>]+>\s*\Z"
_TAG = r"<[^>]*>"
_CODE = r"\b\d{1,6}\b"
_ZIP_END = b"PK\x05\x06"
_ZIP_END_SIZE = 22
_ZIP_COMMENT_MAX = 65535
_COMPOUND_FILE = bytes.fromhex("d0cf11e0a1b11ae1")
_SECTOR = 512


def xml(chunks: Iterable[bytes], delivered: Delivered) -> Iterator[bytes]:
    """Yield the xml document without the keep-alive padding after its end.

    The rows are not counted.
    """
    delivered.rows = None
    head = tail = b""
    for chunk in chunks:
        head += chunk[: BLOCK_BYTES - len(head)]
        tail += chunk
        if len(tail) > 2 * BLOCK_BYTES:
            yield tail[:-BLOCK_BYTES]
            tail = tail[-BLOCK_BYTES:]
    root = re.match(_ROOT, _without_prologue(head))
    if root is None:
        raise delivered.incomplete("it is not xml")
    if root[1] == b"error":
        raise _refusal(tail, root[0]).as_error()
    if error := re.search(_ERROR, tail):
        raise delivered.ended_in(_refusal(error[2], error[1]))
    end = tail.rstrip()
    if not end.endswith(b"</" + root[1] + b">") and not (root[2] and end.endswith(b"/>")):
        raise delivered.cut()
    yield end + (b"\n" if b"\n" in tail[len(end) :] else b"")


def xls(chunks: Iterable[bytes], delivered: Delivered) -> Iterator[bytes]:
    """Yield the spreadsheet unchanged. Its rows are not counted.

    For a spreadsheet in the older binary format, the only check is that the size is a multiple of 512 bytes.
    """
    delivered.rows = None
    head = tail = b""
    size = 0
    for chunk in chunks:
        head += chunk[: len(_COMPOUND_FILE) - len(head)]
        size += len(chunk)
        tail += chunk
        if len(tail) > 2 * (_ZIP_END_SIZE + _ZIP_COMMENT_MAX):
            yield tail[: -_ZIP_END_SIZE - _ZIP_COMMENT_MAX]
            tail = tail[-_ZIP_END_SIZE - _ZIP_COMMENT_MAX :]
    if head.startswith(b"PK"):
        at = tail.rfind(_ZIP_END)
        comment = int.from_bytes(tail[at + _ZIP_END_SIZE - 2 : at + _ZIP_END_SIZE], "little")
        whole = at >= 0 and len(tail) == at + _ZIP_END_SIZE + comment
    elif head == _COMPOUND_FILE:
        whole = size % _SECTOR == 0
        delivered.marks_end = False
    else:
        raise delivered.incomplete("it is not a spreadsheet" if head else "it is empty")
    if not whole:
        raise delivered.cut()
    yield tail


def _without_prologue(head: bytes) -> bytes:
    while match := re.match(_PROLOGUE, head):
        head = head[match.end() :]
    return head


def _refusal(markup: bytes, tag: bytes) -> Refusal:
    """Return the error in an xml element `error`.

    The code of the error is in an attribute of the tag, or in the text.
    """
    text = " ".join(unescape(re.sub(_TAG, " ", markup.decode("utf-8", "replace"))).split())
    code = re.search(_CODE, tag.decode("utf-8", "replace")) or re.search(_CODE, text)
    return Refusal(text or "the service gave no message", int(code[0]) if code else None)
