"""Which hosts the service may connect to for its customers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from ipaddress import ip_address

import pytest

from svcctl.errors import Unavailable, UsageError
from svcctl.service.hosts.allowed_hosts import EVERYTHING, PUBLIC_ONLY, HostRefused, is_public, parse
from svcctl.service.settings import DESTINATIONS_ALLOWED

NAMES = {
    "kafka.example": ["10.1.2.3"],
    "public.example": ["8.8.8.8", "2606:4700::1111"],
    "mixed.example": ["8.8.8.8", "127.0.0.1"],
    "nn.corp.example": ["10.1.2.4"],
    "evil.corp.example": ["169.254.169.254"],
    "corp.example": ["10.1.2.5"],
    "evilcorp.example": ["10.1.2.6"],
    "mapped.example": ["::ffff:10.1.2.3"],
}


def table(host: str, port: int) -> Iterable[str]:
    """Names of the table; other texts are addresses."""
    return NAMES[host] if host in NAMES else [str(ip_address(host))]


def is_allowed(rules: str, host: str, port: int = 9092, *, listed: bool = False) -> bool:
    try:
        replace(parse(rules), resolve=table).addresses(host, port, listed=listed)
    except HostRefused:
        return False
    return True


@pytest.mark.parametrize(
    ("rules", "allowed", "refused"),
    [
        ("*", ["127.0.0.1", "kafka.example", "evil.corp.example"], []),
        ("public", ["public.example", "8.8.8.8"], ["kafka.example", "mixed.example", "127.0.0.1", "mapped.example"]),
        ("kafka.example", ["kafka.example", "KAFKA.Example.", "kafka.example."], ["10.1.2.3", "public.example"]),
        ("*.corp.example", ["nn.corp.example"], ["corp.example", "evilcorp.example", "evil.corp.example"]),
        ("evil.corp.example", ["evil.corp.example"], ["nn.corp.example"]),
        ("10.1.2.0/24", ["kafka.example", "10.1.2.9", "mapped.example"], ["10.1.3.1", "public.example"]),
        ("8.8.8.8", [], ["public.example", "mixed.example"]),
        ("8.8.8.8 2606:4700::/32", ["public.example"], ["mixed.example"]),
        ("::1,127.0.0.0/8", ["::1", "127.9.9.9", "::ffff:127.0.0.1"], ["::2"]),
        ("::ffff:10.0.0.0/104", ["10.1.2.3"], ["11.1.1.1"]),
        ("public,kafka.example:9092", ["public.example", "kafka.example"], ["nn.corp.example"]),
        ("kafka.example:9093", [], ["kafka.example"]),
        ("*:9092", ["kafka.example", "127.0.0.1"], []),
        ("*:443", [], ["kafka.example", "8.8.8.8"]),
        ("10.0.0.0/8:9092 [fd00::/8]:9092", ["kafka.example", "fd00::1"], ["fe80::1"]),
        ("[fd00::1]", ["fd00::1"], ["fd00::2"]),
    ],
)
def test_a_rule_allows_hosts(rules: str, allowed: list[str], refused: list[str]) -> None:
    hosts = [*allowed, *refused]
    assert {host: is_allowed(rules, host) for host in hosts} == {host: host in allowed for host in hosts}


def test_a_host_that_must_be_listed_is_not_allowed_as_a_public_one() -> None:
    assert [is_allowed(rules, "8.8.8.8", listed=True) for rules in ("public", "*:9092", "8.8.0.0/16")] == [0, 0, 1]


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    assert not is_allowed("8.8.8.8", "8.8.8.8", port)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.0.1", "169.254.1.1"),
        *("169.254.169.254", "172.16.0.1", "192.168.1.1", "192.0.0.192", "192.0.2.1", "198.18.0.1", "224.0.0.1"),
        *("240.0.0.1", "255.255.255.255", "168.63.129.16", "::", "::1", "fe80::1", "fd00:ec2::254", "fec0::1"),
        *("ff02::1", "::ffff:127.0.0.1", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "2001::1"),
        *("2002:7f00:1::", "2002:a00:1::", "2001:db8::1", "5f00::1", "100::1"),
    ],
)
def test_an_address_that_is_not_of_the_public_internet_is_refused_unless_it_is_listed(address: str) -> None:
    with pytest.raises(HostRefused):
        PUBLIC_ONLY.addresses(address, 443)
    assert is_allowed(address, address)


@pytest.mark.parametrize("address", ["8.8.8.8", "172.32.0.1", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::"])
def test_an_address_of_the_public_internet_is_allowed(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "host", ["localhost", "localhost.", "LOCALHOST", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0", "１２７.0.0.1"]
)
def test_other_spellings_of_this_machine_are_refused(host: str) -> None:
    with pytest.raises(HostRefused) as caught:
        PUBLIC_ONLY.addresses(host, 80)
    assert caught.value.message == (
        f"the service may not connect to {host}:80: SVCCTL_DESTINATIONS_ALLOWED does not allow it"
    )


@pytest.mark.parametrize("host", ["nowhere.invalid", "", "a" * 300, "a\0b", "127.0.0.1 x"])
def test_a_host_without_an_address_may_have_one_later(host: str) -> None:
    with pytest.raises(Unavailable) as caught:
        EVERYTHING.addresses(host, 80)
    assert not isinstance(caught.value, HostRefused)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("http://a", "is not of the form HOST or HOST:PORT"),
        ("a:b", "is not of the form HOST or HOST:PORT"),
        ("fe80::1%eth0", "is not of the form HOST or HOST:PORT"),
        ("a:0", "has a port that is not between 1 and 65535"),
        ("[::1]:70000", "has a port that is not between 1 and 65535"),
        ("10.0.0.1/8", "is not an address or a network: 10.0.0.1/8 has host bits set"),
        *(
            (entry, "is not a name, *.SUFFIX, an address, a network such as 10.0.0.0/8, public or *")
            for entry in ("10.0.0", "0x7f.1", "127.1", "a..b", "*a", "*.", "-a", "a.*.b")
        ),
    ],
)
def test_an_entry_that_is_not_a_rule_is_named(entry: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        DESTINATIONS_ALLOWED.read({"SVCCTL_DESTINATIONS_ALLOWED": f"public, {entry}"})
    assert f"cannot be used: '{entry}' {reason}" in caught.value.message


def test_a_list_without_entries_is_refused() -> None:
    with pytest.raises(UsageError, match="it contains no hosts"):
        DESTINATIONS_ALLOWED.read({"SVCCTL_DESTINATIONS_ALLOWED": " , "})
