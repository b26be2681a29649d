"""The hosts that the service may connect to for its customers. Customers choose where their jobs deliver rows.

A rule is an entry of SVCCTL_DESTINATIONS_ALLOWED, a list separated by commas or blanks:

    *                   every host
    public              every address of the public Internet
    kafka.example       a host by its name, whatever its addresses
    *.corp.example      hosts with names in .corp.example, except at loopback, link-local and similar addresses
    10.1.2.3, fd00::3   an address
    10.0.0.0/8          a network
    kafka.example:9092  one port of a host; likewise *:443, 10.0.0.0/8:9092, [fd00::/8]:9092

A host is allowed if each of its addresses is allowed by a rule. The caller must connect to the addresses that were
checked, because the name of the host may soon have other addresses.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from svcctl.errors import Unavailable

VARIABLE = "SVCCTL_DESTINATIONS_ALLOWED"
ANY, PUBLIC = "*", "public"
MAX_PORT = 65_535

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Iterable[str]]
"""A function that finds the addresses of a host at a port.

The function raises OSError or ValueError if there is no address.
"""

_NAME = r"(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_]*[a-z_](?:[a-z0-9_-]*[a-z0-9_])?"
_ENTRY = r"\[(?P<v6>[^\[\]]+)\](?::(?P<v6_port>\d+))?|(?P<host>[^:\[\]]+)(?::(?P<port>\d+))?"
_MAPPED = IPv6Network("::ffff:0:0/96")
_WITH_IPV4 = (
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("::/96"), 0),  # IPv4-compatible
    (IPv6Network("2002::/16"), 80),  # 6to4
)
"""The IPv6 networks with addresses that contain an IPv4 address.

Each pair has a network, and the number of bits that follow the IPv4 address in an address of the network.
"""
_METADATA = tuple(map(ip_address, ("168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")))
"""The addresses of metadata services of clouds, except link-local addresses."""
_NOT_PUBLIC = tuple(map(ip_network, ("192.0.0.0/24", "64:ff9b:1::/48", "2001::/32", "5f00::/16", "fec0::/10")))
"""Networks that `is_global` of some Python versions wrongly reports as public: local NAT64, Teredo, site-local."""


class HostRefused(Unavailable):
    """The error for a host that the service may not connect to. The operator can later allow the host."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: a network, or a pattern of host names. `port` is None if the rule allows every port."""

    pattern: str
    network: Network | None = None
    port: int | None = None

    def allows(self, host: str, port: int, address: Address) -> bool:
        if self.port not in (None, port):
            return False
        if self.network is not None:
            return address in self.network
        if self.pattern in (ANY, PUBLIC):
            return self.pattern == ANY or is_public(address)
        if self.pattern.startswith("*."):
            return host.endswith(self.pattern[1:]) and not is_special(address)
        return host == self.pattern


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses that the system finds for a host.

    The system also accepts IPv4 addresses in forms such as `0x7f.1`.
    """
    return [str(row[4][0]) for row in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The rules of a service. If there are no rules, no host is allowed."""

    rules: tuple[Rule, ...]
    resolve: Resolve = resolve

    @property
    def unlimited(self) -> bool:
        """Whether every connection is allowed. If so, no check is needed."""
        return any(rule.pattern == ANY and rule.port is None for rule in self.rules)

    def addresses(self, host: str, port: int, *, listed: bool = False) -> tuple[str, ...]:
        """Return the addresses of a host, if the service may connect to all of them at this port.

        With `listed`, the rules `*` and `public` are ignored. Raises HostRefused if one of the addresses
        is not allowed. Raises Unavailable if the host has no address. Messages omit the addresses, because addresses in
        an internal network may be secret.
        """
        name = _normal(host)
        try:
            texts = dict.fromkeys(self.resolve(name, port))
        except (OSError, ValueError):
            texts = {}
        if not texts:
            raise Unavailable(f"there is no address for the host {host}")
        rules = [rule for rule in self.rules if not (listed and rule.pattern in (ANY, PUBLIC))]
        for text in texts:
            address = _unmapped(ip_address(text.partition("%")[0]))
            if not 0 < port <= MAX_PORT or not any(rule.allows(name, port, address) for rule in rules):
                lacks = "name" if listed else "allow"
                raise HostRefused(f"the service may not connect to {shown(host, port)}: {VARIABLE} does not {lacks} it")
        return tuple(texts)


def parse(text: str) -> AllowedHosts:
    """Parse a list of rules. Raises ValueError with the invalid rule in its message."""
    entries = [entry for entry in re.split(r"[\s,]+", text.lower()) if entry]
    if not entries:
        raise ValueError("it contains no hosts")
    return AllowedHosts(tuple(map(_rule, entries)))


def _rule(entry: str) -> Rule:
    match = re.fullmatch(_ENTRY, entry if entry.count(":") < 2 or "[" in entry else f"[{entry}]")
    if match is None or "%" in entry:
        raise ValueError(f"'{entry}' is not of the form HOST or HOST:PORT")
    digits = match["v6_port"] or match["port"]
    port = int(digits) if digits else None
    if port is not None and not 0 < port <= MAX_PORT:
        raise ValueError(f"'{entry}' has a port that is not between 1 and {MAX_PORT}")
    host = match["v6"] or match["host"]
    if "/" in host or match["v6"] or _is_address(host):
        try:
            return Rule("", _unmapped_network(ip_network(host)), port)
        except ValueError as error:
            raise ValueError(f"'{entry}' is not an address or a network: {error}") from None
    pattern = host if host == ANY else _normal(host)
    if pattern not in (ANY, PUBLIC) and not re.fullmatch(_NAME, pattern.removeprefix("*.")):
        raise ValueError(f"'{entry}' is not a name, *.SUFFIX, an address, a network such as 10.0.0.0/8, public or *")
    return Rule(pattern, None, port)


def shown(host: str, port: int) -> str:
    """Return a host and its port in the usual form, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public Internet. An address of this machine does not count as public."""
    inner = _inner(address)
    if inner is not None and not is_public(inner):
        return False
    if inner is None and (not address.is_global or address.is_multicast or address.is_reserved):
        return False
    return not any(address in network for network in _NOT_PUBLIC) and not is_special(address)


def is_special(address: Address) -> bool:
    """Whether an address belongs to this machine, to its local link, or to a metadata service of a cloud.

    Such a metadata service gives out credentials.
    """
    inner = _inner(address)
    if inner is not None and is_special(inner):
        return True
    if address.is_loopback or address.is_link_local or address.is_multicast or address in IPv4Network("0.0.0.0/8"):
        return True
    return address.is_unspecified or address in _METADATA or _is_own(address)


def _inner(address: Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address contains. Return None if the address contains no IPv4 address."""
    for network, shift in _WITH_IPV4:
        if address in network and isinstance(address, IPv6Address):
            return IPv4Address((int(address) >> shift) & 0xFFFFFFFF)
    return None


def _is_own(address: Address) -> bool:
    """Whether an address belongs to this machine.

    The function asks the system for the source address of a connection to the address. An address of this machine is
    its own source address. Nothing is sent.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((str(address), 9))
        return ip_address(str(probe.getsockname()[0]).partition("%")[0]) == address
    return False


def _unmapped(address: Address) -> Address:
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _unmapped_network(network: Network) -> Network:
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return IPv4Network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96))
    return network


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _normal(host: str) -> str:
    """Return a host in lower case and in ASCII, without a dot at the end."""
    prefix, star, name = host.lower().rpartition("*.")
    with suppress(UnicodeError):
        name = name.encode("idna").decode()
    return f"{prefix}{star}{name.removesuffix('.')}"


EVERYTHING, PUBLIC_ONLY = parse(ANY), parse(PUBLIC)
