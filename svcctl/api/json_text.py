r"""Write and read JSON, and distinguish bytes that are not UTF-8 from halves of surrogate pairs.

Python decodes a byte that is not UTF-8 as a lone surrogate, U+DC80 to U+DCFF: the byte E9 becomes U+DCE9. The JSON
escape \udce9, which is half of a surrogate pair, becomes U+DCE9, too. This module distinguishes the two. A byte that
is not UTF-8 is written unchanged, for example in csv. Half of a surrogate pair is never written as a byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from svcctl.errors import UsageError

_LOW = ("\\udc", "\\uDC", "\\uDc", "\\udC")
_ESCAPE = re.compile(
    r"""
      \\u[dD][89abAB][0-9a-fA-F]{2} \\u[dD][c-fC-F][0-9a-fA-F]{2}  # a pair
    | (?P<lone> \\u[dD][cC][89a-fA-F][0-9a-fA-F] )
    | \\.
    """,
    re.VERBOSE | re.DOTALL,
)
_HALF = "\\udc00"


def encoded(fields: Mapping[str, Any], name: str = "the request") -> bytes:
    """Return the JSON to send, in UTF-8.

    Raises UsageError for a value that JSON cannot express. The message of the error begins with `name`.
    """
    try:
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"{name} contains bytes that are not UTF-8") from None
    except TypeError as error:
        raise UsageError(f"{name} cannot be sent: {error}") from None
    except ValueError:
        raise UsageError(f"{name} contains NaN or an infinite number, which JSON cannot express") from None


def value_of(body: bytes) -> Any:
    """Return the value of a whole JSON text. Raises ValueError or RecursionError if the text cannot be read."""
    return json.loads(without_bytes(body.decode(json.detect_encoding(body), "surrogateescape")))


def without_bytes(text: str) -> str:
    r"""Replace each JSON escape from \udc80 to \udcff that is not part of a surrogate pair.

    Python would decode such an escape like a byte that is not UTF-8. The replacement, \udc00, has the same length.
    """
    if not any(map(text.__contains__, _LOW)):
        return text
    return _ESCAPE.sub(lambda match: _HALF if match["lone"] else match[0], text)
