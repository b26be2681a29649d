"""Compressed answers over a real socket: cut anywhere, damaged, of several members, much larger than they come."""

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import closing

import pytest
from support.scripted import Serve, head, http

from svcctl.api.auth import Bearer
from svcctl.api.client import Client
from svcctl.api.formats.body import whole
from svcctl.api.query import QueryRequest
from svcctl.api.wire.messages import Headers, Request
from svcctl.api.wire.pool import Pool
from svcctl.api.wire.sockets import Route
from svcctl.errors import CredentialsError, IncompleteResult, SvcctlError, Unavailable

# What the errors say, each once; the tests state their kind.
WORDS = {
    "compressed unasked": "the service compressed its answer with {name}, although svcctl asks for no compression",
    "a compression that ends": "the result is incomplete: its {inner} compression ends in the middle",
    "a connection that closed": "the result is incomplete: the connection closed in the middle",
}
HINTS = {
    "compressed unasked": "turn compression off in the service, or in the proxy in front of it",
}

ROWS = b"a,b\n" + b"".join(b"%d,x\n" % number for number in range(20))


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


def two_members(data: bytes) -> bytes:
    return gzip.compress(data[:30], mtime=0) + gzip.compress(data[30:], mtime=0)


CODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", lambda data: gzip.compress(data, mtime=0)),
    "gzip of two members": ("x-gzip", two_members),
    "deflate": ("Deflate", zlib.compress),
    "deflate without a head": ("deflate", raw_deflate),
    "gzip of a deflate": ("deflate, gzip", lambda data: gzip.compress(zlib.compress(data), mtime=0)),
    "identity": ("identity", bytes),
    "a charset": ("UTF-8", bytes),
    "gzip and a charset": ("gzip, utf-8", lambda data: gzip.compress(data, mtime=0)),
}
CUTTABLE = [name for name in CODINGS if name not in ("identity", "a charset", "gzip and a charset")]


def compressed(name: str, data: bytes, *headers: str) -> tuple[bytes, bytes]:
    """The head of an answer that ends by closing, and its compressed body."""
    coding, compress = CODINGS[name]
    return head("200 OK", f"Content-Encoding: {coding}", *headers), compress(data)


def client(url: str) -> Client:
    return Client(url, Bearer("t"), retries=0)


def rows_of(url: str, mode: str = "csv") -> bytes:
    request = QueryRequest(from_="1h", to="now", query="from t", mode=mode)
    with client(url) as service, service.query(request) as answer:
        return b"".join(answer.raw())


def failure(call: Callable[[], object]) -> SvcctlError:
    with pytest.raises(SvcctlError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("name", CODINGS)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_compressed_answer_is_decompressed(serve: Serve, name: str, size: int) -> None:
    start, data = compressed(name, ROWS)
    assert rows_of(serve([start, *(data[at : at + size] for at in range(0, len(data), size))]).url) == ROWS


@pytest.mark.parametrize("name", CUTTABLE)
def test_a_compressed_answer_that_is_cut_anywhere_is_incomplete(serve: Serve, name: str) -> None:
    start, data = compressed(name, ROWS)
    script = serve(*(start + data[:at] for at in range(len(data))))
    member = len(gzip.compress(ROWS[:30], mtime=0))
    for at in range(len(data)):
        if name == "gzip of two members" and at == member:  # a member more is not announced anywhere
            assert failure(lambda: rows_of(script.url)).message == WORDS["a connection that closed"]
            continue
        error = failure(lambda: rows_of(script.url))
        assert type(error) is IncompleteResult, at
        inner = {"gzip of a deflate": "gzip", "gzip of two members": "x-gzip"}.get(
            name, "deflate" if "defl" in name else name
        )
        assert error.message == WORDS["a compression that ends"].format(inner=inner), at


@pytest.mark.parametrize("name", CUTTABLE)
@pytest.mark.parametrize(
    "spoil", [lambda data: data + b"more", lambda data: b"\x00\x01" + data, lambda data: data[:-1] + b"?"]
)
def test_a_damaged_compression_is_incomplete(serve: Serve, name: str, spoil: Callable[[bytes], bytes]) -> None:
    start, data = compressed(name, ROWS)
    error = failure(lambda: rows_of(serve(start + spoil(data)).url))
    assert type(error) is IncompleteResult
    assert "compression" in error.message


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, br"])
def test_another_compression_is_refused_by_its_name(serve: Serve, coding: str) -> None:
    error = failure(lambda: rows_of(serve(http("200 OK", "x", f"Content-Encoding: {coding}")).url))
    name = coding.rpartition(" ")[2]
    assert (type(error), error.message, error.hint) == (
        Unavailable,
        WORDS["compressed unasked"].format(name=name),
        HINTS["compressed unasked"],
    )


def test_an_error_that_is_compressed_is_still_that_error(serve: Serve) -> None:
    start = head("401 No", "Content-Encoding: gzip")
    words = gzip.compress(b'{"error":{"code":12,"message":"no"}}')
    assert failure(lambda: rows_of(serve(start + words).url)).message == "no"
    for answer in (start + words[:-9], head("401 No", "Content-Encoding: br") + words):
        script = serve(answer)
        assert type(failure(lambda script=script: rows_of(script.url))) is CredentialsError  # type: ignore[misc]


def test_headers_that_name_a_compression_need_no_body(serve: Serve) -> None:
    start = head("200 OK", "Content-Encoding: gzip", "Content-Length: 0")
    with client(serve(start).url) as service:
        service.enable_domain("a")
        with service.request("HEAD", "/any") as answer:
            assert list(answer.body) == []


@pytest.mark.parametrize("name", ["gzip", "deflate without a head"])
def test_an_answer_that_grows_a_thousandfold_is_read_in_small_pieces(serve: Serve, name: str) -> None:
    line = b"1," + b"x" * 997 + b"\n"
    start, data = compressed(name, b"a,b\n" + line * 50_000)
    assert len(data) < 300_000
    request = QueryRequest(from_="1h", to="now", query="from t", mode="csv")
    with client(serve(start + data).url) as service, service.query(request) as answer:
        tracemalloc.start()
        assert sum(map(len, answer.raw())) == 4 + 50_000_000
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (answer.row_count, answer.bytes) == (50_000, 50_000_004)
    assert peak < 4_000_000


@pytest.mark.parametrize("compress", [False, True])
def test_an_answer_that_is_held_whole_has_a_limit(serve: Serve, compress: bool) -> None:
    jobs = json.dumps([{"id": "x" * 100}] * 40_000)
    answer = http("200 OK", jobs)
    if compress:
        start, data = compressed("gzip", jobs.encode())
        answer = start + data
    pool = Pool(Route())
    response = pool.send(Request("GET", serve(answer).url, Headers(), b"/"))
    with closing(pool), pytest.raises(Unavailable) as caught:
        whole(response, most=2_000_000)
    assert (caught.value.message, caught.value.reason) == (
        f"the service's answer has {'more than 2.0' if compress else '4.5'} MB, "
        "but at most 2.0 MB can be read into memory",
        "answer-too-large",
    )
