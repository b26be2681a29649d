"""Where requests may go: the URLs and paths of a service, which certificates it must show, and why TLS failed.

Secrets are never sent in the clear, except to this machine.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from svcctl.errors import UsageError

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of a deployment's operations, below the base URL; `domain` is below the provisioning URL if given."""

    query: str = "/search/query"
    job: str = "/search/job"
    jobs: str = "/search/jobs"
    domain: str = "/domain"

    def is_of_domain(self, path: str) -> bool:
        return path == self.domain or path.startswith(self.domain + "/")


DEFAULT_PATHS = Paths()


_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?")


def checked_form(url: str) -> str:
    """The URL without a slash at its end; UsageError when it is not a base URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise UsageError(f"'{url}' is not a URL") from None
    try:
        parts.port  # noqa: B018 (raises when it is not a port)
    except ValueError:
        raise UsageError(f"'{url}' is not a URL: the port must be a number up to 65535") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"'{url}' is not a URL of http or https")
    if not url.isprintable() or " " in url:
        raise UsageError(f"'{url}' is not a URL: it contains blanks")
    if ":" not in parts.hostname and not _HOST.fullmatch(parts.hostname):
        raise UsageError(f"'{url}' is not a URL: '{parts.hostname}' is not the name of a host")
    if parts.username or parts.password:
        raise UsageError("a base URL must not contain a user name or a password")
    if parts.query or parts.fragment:
        raise UsageError(f"'{url}' has a query or a fragment, which a base URL cannot have")
    return url.rstrip("/")


def checked_url(url: str) -> str:
    """The URL without a slash at its end; UsageError when it is not a base URL, or secrets must not be sent there."""
    checked = checked_form(url)
    if urlsplit(url).scheme == "http" and not is_loopback(url):
        raise UsageError(f"'{url}' would send secrets unencrypted", hint="use https; http is only for this machine")
    return checked


def is_loopback(url: str) -> bool:
    """Whether a URL stays on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def trust(verify: bool | str, urls: tuple[str, ...]) -> ssl.SSLContext | None:
    """The settings that check the service's certificate; `verify` may be the path of a CA bundle.

    None for plain http, which checks nothing: loading the certificate authorities takes longer than a local request.
    """
    if not any(url.startswith("https:") for url in urls):
        return None
    import ssl

    try:
        if isinstance(verify, str):
            context = ssl.create_default_context(cafile=verify)
        elif os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
            context = ssl.create_default_context()  # OpenSSL reads both variables
        else:
            import certifi

            context = ssl.create_default_context(cafile=certifi.where())
    except OSError as error:
        raise UsageError(f"the CA bundle '{verify}' cannot be used: {error.strerror or error}") from None
    if verify is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


def segment(name: str) -> str:
    """A name as one segment of a path; UsageError for a name that would change the path."""
    if name in ("", ".", ".."):
        raise UsageError(f"'{name}' cannot be used as a name")
    try:
        return quote(name, safe="@")
    except UnicodeEncodeError:
        raise UsageError(f"'{name}' holds bytes that are not UTF-8") from None


_NO_TLS = (
    "the port does not speak TLS",
    "check the port in base_url; plain http, which is for this machine only, begins with http://",
)
_ENDED = ("the connection was closed during the TLS handshake", _NO_TLS[1])
_TOO_OLD = ("it speaks only versions of TLS that are too old", "ask whoever runs the service for TLS 1.2 or newer")
_REFUSED = (
    "it refused the TLS handshake",
    "it may ask for a client certificate, which svcctl does not send, or speak no cipher in common",
)
_FAILURES = {
    **dict.fromkeys(("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"), _NO_TLS),
    **dict.fromkeys(("HTTP_REQUEST", "UNKNOWN_PROTOCOL"), _NO_TLS),
    "UNEXPECTED_EOF_WHILE_READING": _ENDED,
    **dict.fromkeys(("TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"), _TOO_OLD),
    **dict.fromkeys(("TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE"), _REFUSED),
    "SSLV3_ALERT_BAD_CERTIFICATE": _REFUSED,
}
"""OpenSSL's reason, what happened, and what to do."""
_DATES, _NAMES = (9, 10), (62, 64)
"""OpenSSL's codes for a certificate that is not yet or no longer valid, and for one of another host or address."""


def plain(error: Exception) -> str:
    """An error's words without its numbers and the place in OpenSSL's source."""
    return re.sub(r"^\[(Errno -?\d+|SSL: \w+)\] | \(_ssl\.c:\d+\)$", "", " ".join(str(error).split()))


def tls_failure(error: BaseException) -> tuple[str, str | None] | None:
    """What a failure of TLS means and what to do about it; None for other failures.

    There is no advice for an unknown CA (`is_untrusted`): only who knows the profile can name the command.
    """
    import ssl

    error = first_cause(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        meaning = f"its certificate is not accepted: {error.verify_message.rstrip('.')}"
        if error.verify_code in _DATES:
            return meaning, "the service must renew it, unless this machine's clock is wrong"
        if error.verify_code in _NAMES:
            return meaning, "check the host in base_url: the certificate is for another name"
        return meaning, None
    if isinstance(error, ssl.SSLEOFError):
        return _ENDED
    return _FAILURES.get(error.reason) if isinstance(error, ssl.SSLError) else None


def is_untrusted(error: BaseException) -> bool:
    """Whether a certificate was refused for what it is issued by, not for its dates or its names."""
    from ssl import SSLCertVerificationError

    error = first_cause(error)
    return isinstance(error, SSLCertVerificationError) and error.verify_code not in _DATES + _NAMES


def first_cause(error: BaseException) -> BaseException:
    """The error that an error was raised from, at the end of the chain."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
