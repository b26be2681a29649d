"""The proxy that the environment names for a host, and the hosts that are reached without a proxy.

A service is reached through the proxy in HTTPS_PROXY, or else in ALL_PROXY. If an entry of NO_PROXY covers the host,
the service is reached directly. The lower-case name of each variable takes precedence, and an empty variable counts as
unset. HTTP_PROXY is not used, because svcctl uses plain http only for this machine.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from svcctl.errors import UsageError

HTTPS_PROXY = ("https_proxy", "HTTPS_PROXY")
ALL_PROXY = ("all_proxy", "ALL_PROXY")
NO_PROXY = ("no_proxy", "NO_PROXY")
"""The variable with the hosts that are reached directly. The lower-case name takes precedence."""
DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
"""The default port of a proxy, by the scheme of its URL."""
MAX_SOCKS_BYTES = 255
"""The maximum number of bytes of a user name, a password or a host in SOCKS."""

# These patterns are compiled only when they are used, because few commands need them.
_PLACE = r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[^:]*))?"
_NAME = r"[\w-]+(?:\.[\w-]+)*\.?"
_PORT = r"[0-9]{1,5}"
_BRACKETED = r"\[(?P<address>[^\[\]]*)\](?P<length>/[0-9]+)?(?::(?P<port>.*))?"


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy. `str(proxy)` is its host and port.

    `variable` is the environment variable that names the proxy. `exceptions` is the variable with the hosts that are
    reached without the proxy.
    """

    variable: str
    exceptions: str
    scheme: str
    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def has_credentials(self) -> bool:
        return bool(self.user or self.password)


def proxy_for(host: str, port: int, environment: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for a host; None if the host is reached directly. The name of the host is in ASCII.

    Raises UsageError if the value of the variable that names the proxy cannot be used. The message does not contain the
    value, which may include a password.
    """
    variable, value = _first(HTTPS_PROXY + ALL_PROXY, environment)
    if not value:
        return None
    exceptions, entries = _first(NO_PROXY, environment)
    return None if _is_exception(host, port, exceptions, entries) else _parsed(variable, exceptions, value)


def _first(names: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the name and the value of the first variable that is not empty.

    If all variables are empty, the result is the name of the last variable and an empty value.
    """
    values = ((name, environment.get(name, "").strip()) for name in names)
    return next(((name, value) for name, value in values if value), (names[-1], ""))


# The value of a proxy variable


def _parsed(variable: str, exceptions: str, value: str) -> Proxy:
    scheme, separator, rest = value.partition("://")
    if not separator:
        scheme, rest = "http", value
    scheme = scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise _unusable(variable, f"its scheme is not one of {', '.join(DEFAULT_PORTS)}")
    if any(character.isspace() or not character.isprintable() for character in value):
        raise _unusable(variable, "it contains a blank or a character that cannot be printed")
    authority, *path = re.split(r"[/?#]", rest, maxsplit=1)
    if path and "@" in path[0]:
        raise _unusable(variable, "in its user name and password, write / as %2F, ? as %3F and # as %23")
    credentials, _, place = authority.rpartition("@")
    match = re.fullmatch(_PLACE, place)
    if match is None:
        raise _unusable(variable, "its host and port cannot be read; an IPv6 address needs brackets, as in [::1]:3128")
    host = _host(variable, match["host"])
    port = match["port"] or str(DEFAULT_PORTS[scheme])
    if not _is_port(port):
        raise _unusable(variable, "its port must be a number from 1 to 65535")
    if any(path):
        raise _unusable(variable, "something follows its host and port")
    user, _, password = (_decoded(variable, scheme, text) for text in credentials.partition(":"))
    return Proxy(variable, exceptions, scheme, host, int(port), user, password)


def _host(variable: str, text: str) -> str:
    if text.startswith("["):
        host = text[1:-1].replace("%25", "%")  # in URLs, the % of a zone is %25
        if not isinstance(_address(host), ipaddress.IPv6Address):
            raise _unusable(variable, "its host is not an IPv6 address")
        return host
    try:
        is_name = re.fullmatch(_NAME, text) is not None and bool(text.encode("idna"))
    except UnicodeError:  # a part of the name is longer than 63 bytes, or has a character that names cannot have
        is_name = False
    if not is_name:
        raise _unusable(variable, "its host is not a name or an address" if text else "it has no host")
    return text


def _decoded(variable: str, scheme: str, text: str) -> str:
    from urllib.parse import unquote

    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise _unusable(variable, "its user name or password is not UTF-8") from None
    if scheme.startswith("socks") and len(decoded.encode()) > MAX_SOCKS_BYTES:
        raise _unusable(variable, f"its user name or password has more than {MAX_SOCKS_BYTES} bytes")
    return decoded


def _unusable(variable: str, reason: str) -> UsageError:
    return UsageError(
        f"{variable} does not name a usable proxy: {reason}",
        hint="a proxy is HOST:PORT or SCHEME://USER:PASSWORD@HOST:PORT",
    )


def _is_port(text: str) -> bool:
    return re.fullmatch(_PORT, text) is not None and 0 < int(text) < 65536


# Exceptions


def _is_exception(host: str, port: int, variable: str, entries: str) -> bool:
    """Return whether an entry of NO_PROXY covers a host.

    If no entry covers the host, raises UsageError for an entry that cannot be read.
    """
    host = host.lower().rstrip(".")
    unreadable = None
    for number, entry in enumerate(re.split(r"[\s,]+", entries.strip(" \t,")), 1):
        try:
            if entry and _covers(entry.lower(), host, port):
                return True
        except ValueError:
            unreadable = unreadable or number
    if unreadable:
        raise UsageError(
            f"entry {unreadable} of {variable} cannot be read",
            hint="entries are names, addresses and ranges such as 10.0.0.0/8, separated by commas or blanks; "
            "a port may follow: host:8443, [::1]:8443",
        )
    return False


def _covers(entry: str, host: str, port: int) -> bool:
    """Return whether an entry of NO_PROXY covers a host and a port.

    Raises ValueError for an entry that cannot be read.
    """
    pattern, only_port = _split(entry)
    address = _address(host)
    if "/" in pattern:
        network = _network(pattern)
        covered = address is not None and _plain(address) in network
    elif (exact := _address(pattern)) is not None:
        covered = address is not None and _plain(address) == _plain(exact) and _zone(exact) in ("", _zone(address))
    elif "*" in pattern:
        covered = re.fullmatch(_ascii(pattern).replace(".", r"\.").replace("*", ".*"), host) is not None
    else:
        name = _ascii(pattern.strip("."))
        covered = host == name or (address is None and host.endswith(f".{name}"))
    return covered and only_port in (None, port)


def _split(entry: str) -> tuple[str, int | None]:
    """Split an entry of NO_PROXY into its pattern and its port. The port is None if the entry has no port.

    Raises ValueError for an invalid port.
    """
    if bracketed := re.fullmatch(_BRACKETED, entry):
        pattern, port = bracketed["address"] + (bracketed["length"] or ""), bracketed["port"]
    elif entry.count(":") == 1:
        pattern, _, port = entry.partition(":")
    else:
        pattern, port = entry, None
    if port is None:
        return pattern, None
    if not _is_port(port):
        raise ValueError
    return pattern, int(port)


def _ascii(pattern: str) -> str:
    """Return a host name in ASCII. A `*` in the name matches any text.

    Raises ValueError for a text that is not a host name.
    """
    if not re.fullmatch(_NAME, pattern.replace("*", "x").strip(".")):
        raise ValueError
    labels = (label if label.isascii() else label.encode("idna").decode() for label in pattern.rstrip(".").split("."))
    return ".".join(labels)


_MAPPED_BITS = 96
"""The length, in bits, of the prefix ::ffff: of an IPv4 address that is written as IPv6."""
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(text: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _plain(address: IPAddress) -> IPAddress:
    """Return an IP address without its zone. An IPv4 address that is written as IPv6 is converted to IPv4."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    return address.ipv4_mapped or ipaddress.IPv6Address(address.packed)


def _zone(address: IPAddress) -> str:
    return getattr(address, "scope_id", None) or ""


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Parse a range of IP addresses. The last numbers of an IPv4 address may be missing, as in 169.254/16.

    A range of IPv4 addresses that is written as IPv6 is converted to IPv4, as in `_plain`.
    """
    start, _, length = text.partition("/")
    if ":" not in start:
        start += ".0" * (3 - start.count("."))
    network = ipaddress.ip_network(f"{start}/{length}", strict=False)
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is None or network.prefixlen < _MAPPED_BITS:
        return network
    return ipaddress.IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
