"""The proxy that connects the library of S3 to allowed hosts only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from peers.s3 import S3Peer

from svcctl.errors import Unavailable
from svcctl.service.hosts.allowed_hosts import AllowedHosts, parse
from svcctl.service.hosts.proxy import CheckingProxy
from svcctl.storage.s3 import S3, Keys


@contextmanager
def server(location: str = "") -> Iterator[tuple[int, list[str]]]:
    """The port of a server, and the requests that it got; it redirects them to `location`."""
    requests: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            requests.append(f"{self.command} {self.path} {self.headers['host']}")
            self.send_response(307 if location else 200)
            self.send_header("location", location)
            self.send_header("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT")
            self.send_header("content-length", "7")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as listening:
        thread = Thread(target=listening.serve_forever, args=(0.02,))
        thread.start()
        yield listening.server_port, requests
        listening.shutdown()
        thread.join()


def size(endpoint: str, allowed: AllowedHosts) -> int | None:
    """The size of the object `b/a` as a client of S3 sees it through the proxy."""
    with closing(CheckingProxy(allowed)) as proxy:
        return S3("b", keys=None, endpoint=endpoint, proxy=proxy).size("a")


def test_an_allowed_host_gets_the_request_as_without_a_proxy() -> None:
    with server() as (port, requests):
        assert size(f"http://localhost:{port}/x", parse(f"localhost:{port}")) == 7
    assert requests == [f"HEAD /x/b/a localhost:{port}"]


@pytest.mark.parametrize("target", ["http://127.0.0.1:{port}/a", "http://localhost:{port}/a"])
def test_a_redirect_leads_to_allowed_hosts_only(target: str) -> None:
    with server() as (inner, hidden), server(target.format(port=inner)) as (port, _):
        with pytest.raises(Unavailable) as caught:
            size(f"http://127.0.0.1:{port}", parse(f"127.0.0.1:{port}"))
        assert "SVCCTL_DESTINATIONS_ALLOWED does not allow it" in caught.value.message
        assert hidden == []
        assert size(f"http://127.0.0.1:{port}", parse("127.0.0.1")) == 7


def test_https_is_refused_before_a_connection_is_made() -> None:
    with server() as (port, requests):
        with pytest.raises(Unavailable) as caught:
            size(f"https://127.0.0.1:{port}", parse("public"))
        assert caught.value.message == (
            f"s3://b/a: the service may not connect to 127.0.0.1:{port}: SVCCTL_DESTINATIONS_ALLOWED does not allow it"
        )
    assert requests == []


def test_a_name_is_resolved_once_and_its_checked_address_is_connected_to() -> None:
    asked: list[str] = []

    def rebinding(host: str, port: int) -> Iterable[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    with server() as (port, requests):
        rules = AllowedHosts(parse("127.0.0.1").rules, rebinding)
        assert size(f"http://rebinding.invalid:{port}", rules) == 7
        assert requests == [f"HEAD /b/a rebinding.invalid:{port}"]
        with pytest.raises(Unavailable, match=r"may not connect to rebinding\.invalid"):
            size(f"http://rebinding.invalid:{port}", rules)
    assert len(requests) == 1


def test_a_server_that_nobody_runs_is_named_with_the_reason() -> None:
    with server() as (port, _):
        pass
    with pytest.raises(Unavailable) as caught:
        size(f"http://127.0.0.1:{port}", parse("127.0.0.1"))
    assert caught.value.message == f"s3://b/a: no connection to 127.0.0.1:{port}: Connection refused"


def test_objects_of_any_size_pass_through_it(s3_peer: S3Peer) -> None:
    bucket = s3_peer.fresh_bucket()
    with closing(CheckingProxy(parse("127.0.0.1"))) as proxy:
        keys = Keys(bucket.key, bucket.secret)
        storage = S3(bucket.bucket, keys=keys, region=bucket.region, endpoint=bucket.endpoint, proxy=proxy)
        for name, content in (("small", b"1"), ("large", bytes(20_000_000))):
            with storage.create(name, overwrite=False) as sink:
                sink.write(content)
                sink.complete()
            assert b"".join(storage.read(name)) == content
        assert sorted(storage.sizes()) == [("large", 20_000_000), ("small", 1)]
