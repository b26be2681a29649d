"""The URLs of a service, the certificates that the client trusts, and explanations of TLS failures.

Unencrypted http is allowed only for a service on this machine, because requests contain secrets.
"""

from __future__ import annotations

import ipaddress
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeGuard
from urllib.parse import quote, urlsplit

from svcctl.errors import UsageError, reason
from svcctl.words import mask_urls

if TYPE_CHECKING:
    import ssl


class Paths(NamedTuple):
    """The paths of a service's operations.

    Operations on domains and roles can have a base URL of their own, which is called the provisioning URL. If it is
    set, the path `domain` is appended to it. All other paths are appended to the usual base URL.
    """

    query: str = "/search/query"
    job: str = "/search/job"
    jobs: str = "/search/jobs"
    domain: str = "/domain"

    def is_of_domain(self, path: str) -> bool:
        return path == self.domain or path.startswith(self.domain + "/")


DEFAULT_PATHS = Paths()


_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?")


def checked_form(url: str) -> str:
    """Check a base URL, and return it without a slash at its end. Raises UsageError for any other text."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise UsageError(f"'{mask_urls(url)}' is not a URL") from None
    try:
        parts.port  # noqa: B018 (raises ValueError if the port is invalid)
    except ValueError:
        raise UsageError(f"'{mask_urls(url)}' is not a URL: the port must be a number up to 65535") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"'{mask_urls(url)}' is not a URL of http or https")
    if not url.isprintable() or " " in url:
        raise UsageError(f"'{mask_urls(url)}' is not a URL: it contains blanks")
    if ":" not in parts.hostname and not _HOST.fullmatch(parts.hostname):
        raise UsageError(f"'{mask_urls(url)}' is not a URL: '{parts.hostname}' is not the name of a host")
    if parts.username or parts.password:
        raise UsageError("a base URL must not contain a user name or a password")
    if parts.query or parts.fragment:
        raise UsageError(f"'{mask_urls(url)}' has a query or a fragment, which a base URL cannot have")
    return url.rstrip("/")


def checked_url(url: str) -> str:
    """Check a base URL, and return it without a slash at its end.

    Raises UsageError for a text that is not a base URL, and for an http URL of another machine.
    """
    checked = checked_form(url)
    if urlsplit(url).scheme == "http" and not is_loopback(url):
        raise UsageError(
            f"'{mask_urls(url)}' would send secrets unencrypted", hint="use https; http is only for this machine"
        )
    return checked


def is_loopback(url: str) -> bool:
    """Return whether the host of a URL is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def trust(verify: bool | str, urls: tuple[str, ...]) -> ssl.SSLContext | None:
    """Return the TLS context for connections to `urls`; None if no URL begins with https.

    `verify` is the path of a CA bundle, or True, or False. If `verify` is False, no certificate is checked. If `verify`
    is True, the environment variables SSL_CERT_FILE and SSL_CERT_DIR can name the trusted authorities. Raises
    UsageError if a file or a directory has no usable certificate.
    """
    if not any(url.startswith("https:") for url in urls):
        return None
    import ssl

    file, directories = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if isinstance(verify, str):
        context = _trusting("the CA bundle", verify)
    elif verify and (file or directories):
        context = ssl.create_default_context()  # OpenSSL reads both variables, and ignores missing files silently
        if file and not context.cert_store_stats()["x509"]:
            _trusting("SSL_CERT_FILE", file)
            raise _unusable("SSL_CERT_FILE", file, _NO_CERTIFICATE)
        if directories:
            _check_directories(directories)
    else:
        import certifi

        context = ssl.create_default_context(cafile=certifi.where())
    if verify is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    # By default Python accepts any end of the connection as the end of TLS, even if an attacker has cut the connection.
    # Python before 3.11.4 also tells OpenSSL 3 to accept it, by an option that older versions of OpenSSL do not have.
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    context.wrap_socket = partial(context.wrap_socket, suppress_ragged_eofs=False)  # type: ignore[method-assign]
    return context


_NO_CERTIFICATE = "it has no readable certificate in PEM format"
_HASHED_NAME = r"[0-9a-f]{8}\.[0-9]+"


def _trusting(source: str, path: str) -> ssl.SSLContext:
    """Return a TLS context that trusts the certificates in a file.

    Raises UsageError if the file has no certificate. `source` describes where the path of the file comes from, and is
    part of the message.
    """
    import ssl

    try:
        context = ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise _unusable(source, path, _NO_CERTIFICATE) from None
    except (OSError, ValueError) as error:  # a null character in the path raises ValueError
        raise _unusable(source, path, reason(error)) from None
    if not context.cert_store_stats()["x509"]:  # loading a file that only lists revoked certificates succeeds, too
        raise _unusable(source, path, _NO_CERTIFICATE)
    return context


def _check_directories(paths: str) -> None:
    """Raise UsageError if OpenSSL finds no certificate in any directory of SSL_CERT_DIR."""
    problems = {path: _problem(path) for path in paths.split(os.pathsep)}
    if all(problems.values()):
        path, problem = next(iter(problems.items()))
        raise _unusable("SSL_CERT_DIR", path, str(problem))


def _problem(directory: str) -> str | None:
    """Explain why OpenSSL finds no certificate in a directory; None if OpenSSL finds one.

    OpenSSL looks only for files that have a hash as their name. The command 'openssl rehash' creates such names.
    """
    try:
        entries = list(Path(directory).iterdir()) if directory else []
        if any(re.fullmatch(_HASHED_NAME, entry.name) and entry.exists() for entry in entries):
            return None
    except OSError as error:
        return reason(error)
    return "it has no certificates with the names that 'openssl rehash' makes" if entries else "it is empty"


def _unusable(source: str, path: str, problem: str) -> UsageError:
    return UsageError(f"{source} '{path}' cannot be used: {problem}", hint=_TRUST_HINTS[source])


_TRUST_HINTS = {
    "the CA bundle": "ca_bundle is a file with the certificates of authorities",
    "SSL_CERT_FILE": "unset SSL_CERT_FILE, or set it to a file with the certificates of authorities",
    "SSL_CERT_DIR": "unset SSL_CERT_DIR, or set it to a directory that 'openssl rehash' has prepared",
}


def segment(name: str) -> str:
    """Quote a name as one segment of a URL's path.

    Raises UsageError for an empty name, for `.` and `..`, and for a name that is not valid text.
    """
    if not isinstance(name, str):
        raise UsageError(f"a name must be text, not {type(name).__name__}")
    if name in ("", ".", ".."):
        raise UsageError(f"'{name}' cannot be used as a name")
    try:
        return quote(name, safe="@")
    except UnicodeEncodeError:
        raise UsageError(f"'{name}' contains bytes that are not UTF-8") from None


_NO_TLS = (
    "the port does not speak TLS",
    "check the port in base_url; plain http, which is for this machine only, begins with http://",
)
_ENDED = ("the connection was closed during the TLS handshake", _NO_TLS[1])
_TOO_OLD = ("it only supports versions of TLS that are too old", "ask the operator of the service for TLS 1.2 or newer")
_REFUSED = (
    "it refused the TLS handshake",
    "the service may require a client certificate, which svcctl does not send, or share no cipher with svcctl",
)
_FAILURES = {
    **dict.fromkeys(("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"), _NO_TLS),
    **dict.fromkeys(("HTTP_REQUEST", "UNKNOWN_PROTOCOL"), _NO_TLS),
    "UNEXPECTED_EOF_WHILE_READING": _ENDED,
    **dict.fromkeys(("TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"), _TOO_OLD),
    **dict.fromkeys(("TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE"), _REFUSED),
    "SSLV3_ALERT_BAD_CERTIFICATE": _REFUSED,
}
"""The reasons that OpenSSL gives for TLS failures, each with its meaning and with advice to the user."""
_DATES, _NAMES = (9, 10), (62, 64)
"""OpenSSL's error codes for certificates.

`_DATES` are the codes for a certificate that is expired or not yet valid. `_NAMES` are the codes for a certificate that
belongs to another host or address.
"""


def plain(error: Exception) -> str:
    """Return the text of an error, without the error number and without the position in OpenSSL's source code."""
    return re.sub(r"^\[(Errno -?\d+|SSL: \w+)\] | \(_ssl\.c:\d+\)$", "", " ".join(str(error).split()))


def tls_failure(error: BaseException, *, connected: bool = False) -> tuple[str, str | None] | None:
    """Return the meaning of a TLS failure, and advice for the user; None if the error is not a TLS failure.

    `connected` says that the TLS handshake was complete before the failure. If the CA of a certificate is unknown, the
    advice is None.
    """
    import ssl

    error = first_cause(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        meaning = f"its certificate is not accepted: {error.verify_message.rstrip('.')}"
        if error.verify_code in _DATES:
            advice = "check this machine's clock; if it is right, ask the operator of the service for a new certificate"
            return meaning, advice
        if error.verify_code in _NAMES:
            return meaning, "check the host in base_url: the certificate is for another name"
        return meaning, None
    if _is_early_end(error):
        return ("it closed the connection before the end of its answer", None) if connected else _ENDED
    return _FAILURES.get(error.reason) if isinstance(error, ssl.SSLError) else None


def is_closed_without_notify(error: BaseException) -> bool:
    """Return whether the peer closed a TLS connection without sending close_notify.

    The message close_notify says that no more data follows.
    """
    import ssl

    error = first_cause(error)
    # Python raises the same error for a reset connection and for a closed connection. For a closed connection,
    # OpenSSL 3 adds a reason.
    explained = ssl.OPENSSL_VERSION_INFO >= (3,)
    return _is_early_end(error) and (error.reason is not None or not explained)


def _is_early_end(error: BaseException) -> TypeGuard[ssl.SSLError]:
    """Return whether an error says that a TLS connection ended without the message close_notify.

    Before version 3.11.4, Python reports this end with the general class SSLError.
    """
    import ssl

    early = isinstance(error, ssl.SSLError) and error.reason == "UNEXPECTED_EOF_WHILE_READING"
    return early or isinstance(error, ssl.SSLEOFError)


def is_untrusted(error: BaseException) -> bool:
    """Return whether a certificate was refused because of its issuer, and not because of its dates or names."""
    from ssl import SSLCertVerificationError

    error = first_cause(error)
    return isinstance(error, SSLCertVerificationError) and error.verify_code not in _DATES + _NAMES


def first_cause(error: BaseException) -> BaseException:
    """Return the original error, which is at the end of the chain of causes.

    If an error was raised `from None`, its context counts as its cause.
    """
    while (cause := error.__cause__ or (error.__context__ if error.__suppress_context__ else None)) is not None:
        error = cause
    return error
