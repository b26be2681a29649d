"""What OpenSSL says when a connection fails, in plain words with what to do: one table for requests and diagnosis."""

from __future__ import annotations

import re

_NO_TLS = (
    "the port does not speak TLS",
    "check the port in base_url; plain http, which is for this machine only, begins with http://",
)
_TABLE = (
    (
        r"certificate has expired|not yet valid",
        "its certificate is not accepted: {}",
        "the service must renew it, unless this machine's clock is wrong",
    ),
    (
        r"mismatch|not valid for",
        "its certificate is not accepted: {}",
        "check the host in base_url: the certificate is for another name",
    ),
    (
        r"certificate verify failed|self-signed|local issuer",
        "its certificate is not accepted: {}",
        "trust its CA: svcctl profile set NAME ca_bundle=FILE",
    ),
    (r"wrong version number|record layer failure|packet length too long|http request|unknown protocol", *_NO_TLS),
    (r"unexpected eof|eof occurred", "the connection was closed during the TLS handshake", _NO_TLS[1]),
    (
        r"protocol version|unsupported protocol",
        "it speaks only versions of TLS that are too old",
        "ask whoever runs the service for TLS 1.2 or newer",
    ),
    (
        r"certificate required|handshake failure|bad certificate",
        "it refused the TLS handshake",
        "it may ask for a client certificate, which svcctl does not send, or speak no cipher in common",
    ),
)
"""A pattern of OpenSSL's words, what happened, with OpenSSL's detail in place of `{}`, and what to do."""


def plain(error: Exception | str) -> str:
    """An error's words without its numbers and the place in OpenSSL's source."""
    return re.sub(r"^\[(Errno -?\d+|SSL: \w+)\] | \(_ssl\.c:\d+\)$", "", " ".join(str(error).split()))


def explained(error: Exception | str) -> tuple[str, str] | None:
    """What a failure of TLS means and what to do about it; None for other failures."""
    words = plain(error)
    for pattern, meaning, hint in _TABLE:
        if re.search(pattern, words, re.IGNORECASE):
            detail = re.sub(r"^certificate verify failed: |\.$", "", words)
            return meaning.format(detail), hint
    return None
