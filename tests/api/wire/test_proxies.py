"""The proxy that the environment names: precedence of variables, forms of values, and hosts that are excepted."""

from __future__ import annotations

import pytest

from svcctl.api.wire.proxies import Proxy, proxy_for
from svcctl.errors import UsageError

A, B, C, D = "http://a:1", "http://b:1", "http://c:1", "http://d:1"


@pytest.mark.parametrize(
    ("environment", "variable", "host"),
    [
        ({"https_proxy": A, "HTTPS_PROXY": B, "all_proxy": C, "ALL_PROXY": D}, "https_proxy", "a"),
        ({"HTTPS_PROXY": B, "all_proxy": C, "ALL_PROXY": D}, "HTTPS_PROXY", "b"),
        ({"all_proxy": C, "ALL_PROXY": D}, "all_proxy", "c"),
        ({"ALL_PROXY": D}, "ALL_PROXY", "d"),
        ({"https_proxy": "", "HTTPS_PROXY": B}, "HTTPS_PROXY", "b"),
        ({"https_proxy": " \t", "HTTPS_PROXY": "", "ALL_PROXY": D}, "ALL_PROXY", "d"),
        ({"https_proxy": A, "all_proxy": "socks://x:9/"}, "https_proxy", "a"),
        ({"https_proxy": A, "HTTPS_PROXY": "http://x:y:z"}, "https_proxy", "a"),
    ],
)
def test_the_first_variable_that_is_not_empty_decides_and_the_others_are_not_read(
    environment: dict[str, str], variable: str, host: str
) -> None:
    proxy = proxy_for("service.test", 443, environment)
    assert proxy is not None
    assert (proxy.variable, proxy.host) == (variable, host)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"HTTP_PROXY": A, "http_proxy": A},
        {"HTTPS_PROXY": ""},
        {"HTTPS_PROXY": A, "NO_PROXY": "service.test"},
        {"HTTPS_PROXY": A, "no_proxy": "service.test", "NO_PROXY": ""},
        {"HTTPS_PROXY": "not:a:proxy", "no_proxy": "*"},
        {"NO_PROXY": "not/readable"},
    ],
)
def test_a_host_is_reached_directly_without_a_proxy_or_if_it_is_excepted(environment: dict[str, str]) -> None:
    assert proxy_for("service.test", 443, environment) is None


def test_exceptions_in_lower_case_go_before_those_in_upper_case() -> None:
    proxy = proxy_for("service.test", 443, {"HTTPS_PROXY": A, "no_proxy": "x", "NO_PROXY": "*"})
    assert proxy is not None
    assert proxy.exceptions == "no_proxy"


@pytest.mark.parametrize(
    ("value", "scheme", "place", "user", "password"),
    [
        ("p", "http", "p:80", "", ""),
        ("p:3128", "http", "p:3128", "", ""),
        ("p:", "http", "p:80", "", ""),
        ("  p:3128\n", "http", "p:3128", "", ""),
        ("ann:x@p:3128", "http", "p:3128", "ann", "x"),
        ("HTTP://p:3128/", "http", "p:3128", "", ""),
        ("https://p", "https", "p:443", "", ""),
        ("socks5://p", "socks5", "p:1080", "", ""),
        ("Socks5h://p", "socks5h", "p:1080", "", ""),
        ("http://10.0.0.1:65535", "http", "10.0.0.1:65535", "", ""),
        ("http://[::1]:3128", "http", "[::1]:3128", "", ""),
        ("http://[fe80::1%25eth0]:3128", "http", "[fe80::1%eth0]:3128", "", ""),
        ("http://bücher.example:3128", "http", "bücher.example:3128", "", ""),
        ("http://my_proxy.local.:3128", "http", "my_proxy.local.:3128", "", ""),
        ("http://ann@p", "http", "p:80", "ann", ""),
        ("http://ann:@p", "http", "p:80", "ann", ""),
        ("http://:x@p", "http", "p:80", "", "x"),
        ("http://ann:x@y@p", "http", "p:80", "ann", "x@y"),
        ("http://ann:x:y@p", "http", "p:80", "ann", "x:y"),
        ("http://ann:x[y]@p", "http", "p:80", "ann", "x[y]"),
        ("http://a%40b:%2F%3f%23%3a%20ü%25@p", "http", "p:80", "a@b", "/?#: ü%"),
        ("http://ann:50%zz@p", "http", "p:80", "ann", "50%zz"),
    ],
)
def test_a_proxy_is_read_from_a_value(value: str, scheme: str, place: str, user: str, password: str) -> None:
    proxy = proxy_for("service.test", 443, {"HTTPS_PROXY": value})
    assert proxy is not None
    assert (proxy.scheme, str(proxy), proxy.user, proxy.password) == (scheme, place, user, password)


SCHEME = "its scheme is not one of http, https, socks5, socks5h"
PORT = "its port must be a number from 1 to 65535"
ESCAPES = "in its user name and password, write / as %2F, ? as %3F and # as %23"
BLANK = "it contains a blank or a character that cannot be printed"
BRACKETS = "its host and port cannot be read; an IPv6 address needs brackets, as in [::1]:3128"
NO_HOST = "it has no host"
NO_NAME = "its host is not a name or an address"
MORE = "something follows its host and port"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("socks://p:1080/", SCHEME),
        ("socks4://p", SCHEME),
        ("socks4a://p", SCHEME),
        ("ftp://p", SCHEME),
        ("://p", SCHEME),
        ("ann:hunter2://x@p", SCHEME),
        ("http://p:0", PORT),
        ("http://p:99999", PORT),
        ("http://p:123456", PORT),
        ("http://p:-1", PORT),
        ("http://p:٣", PORT),
        ("p:port", PORT),
        ("http://ann:hunter2", PORT),
        ("http://ann:hunter2#9@p:9", ESCAPES),
        ("http://ann:hunter2/9@p:9", ESCAPES),
        ("http://ann:1234/hunter2@p:9", ESCAPES),
        ("http://ann:hunter2?@p:9", ESCAPES),
        ("http://p:3128 ,x", BLANK),
        ("http://ann:hunter2 @p", BLANK),
        ("http://ann:hunter2\x1b[m@p", BLANK),
        ("http://ann:hunter2\udcff@p", BLANK),
        ("http://", NO_HOST),
        ("http://:3128", NO_HOST),
        ("http://ann:hunter2@", NO_HOST),
        ("//p:3128", NO_HOST),
        ("http://::1:3128", BRACKETS),
        ("http://[::1", BRACKETS),
        ("http:p:3128", BRACKETS),
        ("http://[p]:3128", "its host is not an IPv6 address"),
        ("http://p\\q:3128", NO_NAME),
        (f"http://{'p' * 64}.example:3128", NO_NAME),
        ("http://p..example:3128", NO_NAME),
        ("http://p/proxy.pac", MORE),
        ("http://p:3128/?x", MORE),
        ("http://ann:hunter2%ff@p", "its user name or password is not UTF-8"),
        ("socks5://ann:" + "hunter2" * 40 + "@p", "its user name or password has more than 255 bytes"),
    ],
)
def test_a_value_that_cannot_be_used_is_a_usage_error_that_does_not_show_it(value: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        proxy_for("service.test", 443, {"all_proxy": value})
    assert caught.value.message == f"all_proxy does not name a usable proxy: {reason}"
    assert caught.value.hint == "a proxy is HOST:PORT or SCHEME://USER:PASSWORD@HOST:PORT"


def test_a_proxy_does_not_show_its_secrets() -> None:
    assert "hunter2" not in repr(proxy_for("service.test", 443, {"HTTPS_PROXY": "http://ann:hunter2@p"}))


def is_excepted(entries: str, host: str, port: int = 443) -> bool:
    return not isinstance(proxy_for(host, port, {"HTTPS_PROXY": A, "NO_PROXY": entries}), Proxy)


@pytest.mark.parametrize(
    ("entries", "host", "other"),
    [
        ("service.test", "service.test", "xservice.test"),
        ("service.test", "a.service.test", "service.test.other"),
        (".service.test", "a.service.test", "xservice.test"),
        (".service.test", "service.test", "test"),
        ("*.service.test", "a.b.service.test", "service.test"),
        ("SERVICE.Test", "service.test", "other.test"),
        ("service.test.", "service.test", "other.test"),
        ("service.test", "service.test.", "other.test."),
        ("localhost", "localhost", "127.0.0.1"),
        ("api-*.test", "api-1.test", "api.test"),
        ("my_host", "my_host", "myxhost"),
        ("*", "service.test", ""),
        ("a, *", "10.0.0.1", ""),
        ("a,b", "b", "c"),
        ("a b\tc\nd", "d", "abcd"),
        (" , a ,, ", "a", "b"),
        ("bücher.example", "xn--bcher-kva.example", "bucher.example"),
        ("*.bücher.example", "a.xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("10.0.0.1", "10.0.0.1", "10.0.0.10"),
        ("0.0.1", "x.0.0.1", "10.0.0.1"),
        ("10.0.0.0/8", "10.255.1.2", "11.0.0.1"),
        ("10.1.2.3/8", "10.255.1.2", "a.10.255.1.2"),
        ("169.254/16", "169.254.1.2", "169.255.1.2"),
        ("192.168.*", "192.168.3.4", "192.169.3.4"),
        ("10.0.0.1/32", "10.0.0.1", "10.0.0.2"),
        ("0.0.0.0/0", "10.0.0.1", "::1"),
        ("::1", "::1", "::2"),
        ("[::1]", "::1", "::2"),
        ("0:0:0:0:0:0:0:1", "::1", "::2"),
        ("FD00::/8", "fd12::3", "fe12::3"),
        ("[fd00::]/8", "fd12::3", "10.0.0.1"),
        ("10.0.0.0/8", "::ffff:10.0.0.1", "::ffff:11.0.0.1"),
        ("::ffff:10.0.0.0/104", "10.1.2.3", "11.0.0.1"),
        ("[::ffff:a00:0]/104", "::ffff:10.1.2.3", "::ffff:11.0.0.1"),
        ("::/0", "fd12::3", "10.0.0.1"),
        ("fe80::1", "fe80::1%eth0", "fe80::2%eth0"),
        ("fe80::1%eth0", "fe80::1%eth0", "fe80::1%eth1"),
        ("fe80::/10", "fe80::1%eth0", "fd80::1"),
    ],
)
def test_an_entry_covers_hosts_and_not_others(entries: str, host: str, other: str) -> None:
    assert (is_excepted(entries, host), is_excepted(entries, other) if other else False) == (True, False)


@pytest.mark.parametrize(
    ("entry", "host"),
    [
        ("service.test:8443", "service.test"),
        (".service.test:8443", "a.service.test"),
        ("*.service.test:8443", "a.service.test"),
        ("*:8443", "service.test"),
        ("10.0.0.1:8443", "10.0.0.1"),
        ("10.0.0.0/8:8443", "10.0.0.1"),
        ("[::1]:8443", "::1"),
        ("[fd00::]/8:8443", "fd00::1"),
    ],
)
def test_an_entry_with_a_port_covers_no_other_port(entry: str, host: str) -> None:
    assert (is_excepted(entry, host, 8443), is_excepted(entry, host, 443)) == (True, False)


@pytest.mark.parametrize(
    "entry",
    [
        *(
            "10.0.0.0/33",
            "fd00::/129",
            "10.0.0.0/x",
            "service.test/8",
            "a:",
            "a:0",
            "a:99999",
            "a:b",
            "[::1]:x",
            "[::1",
        ),
        *("1::2::3", "https://service.test", "a;b", "<local>", ".", "a..b", "a\udcff", "ü" * 70),
    ],
)
def test_an_entry_that_cannot_be_read_is_a_usage_error_unless_another_covers_the_host(entry: str) -> None:
    with pytest.raises(UsageError) as caught:
        is_excepted(f"x, {entry} y", "service.test")
    assert caught.value.message == "entry 2 of NO_PROXY cannot be read"
    assert is_excepted(f"x,{entry},*", "service.test")
