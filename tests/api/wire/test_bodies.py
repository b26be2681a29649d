"""Bodies in chunks, however they arrive: the same bytes as chunk by chunk, and no other framing than the protocol's."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.api.wire.bodies import CUT, Chunked, Framing, Length, UntilClose
from svcctl.api.wire.failures import RemoteProtocolError

BOX = 4096
MAX_TRAILER = 200


def received(framing: Framing, pieces: list[bytes]) -> tuple[bytes, bytes]:
    """The body that a framing takes out of pieces, and what is left behind it."""
    box = bytearray(b"\r\n0\r\n\r\n" * BOX)  # what an earlier block left behind must not matter
    start = end = 0
    body = b""
    for piece in pieces:
        rest = bytes(box[start:end]) + piece
        box[: len(rest)] = rest
        start, end = 0, len(rest)
        if not framing.ended:
            data, start = framing.take(box, start, end)
            body += data
    return body, bytes(box[start:end])


def cut(data: bytes, places: list[int]) -> list[bytes]:
    cuts = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(cuts)]


CHUNK = st.tuples(
    st.binary(min_size=1, max_size=40) | st.sampled_from([b"\r\n", b"5\r\n", b"\r\n0\r\n\r\n", b"12345"]),
    st.sampled_from(["%x", "%X", "00%x"]),
    st.sampled_from([b"", b";a=b", b" ", b' ; quoted="x y"']),
)
PLACES = st.lists(st.integers(0, 10_000), max_size=12)


@given(
    st.lists(CHUNK, max_size=8), st.integers(1, 5), st.sampled_from([b"", b"X-Sum: 1\r\n", b"A: b\r\nC:\r\n"]), PLACES
)
def test_chunks_are_joined_however_they_arrive(
    chunks: list[tuple[bytes, str, bytes]], times: int, trailers: bytes, places: list[int]
) -> None:
    lines = [((size % len(data)).encode() + extra, data) for data, size, extra in chunks for _ in range(times)]
    wire = b"".join(b"%b\r\n%b\r\n" % line for line in lines) + b"0\r\n" + trailers + b"\r\n"
    framing = Chunked(MAX_TRAILER)
    assert received(framing, cut(wire + b"next", places)) == (b"".join(data for _, data in lines), b"next")
    assert framing.ended


@given(st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=4), PLACES)
def test_a_chunked_body_that_is_cut_anywhere_is_noticed(chunks: list[bytes], places: list[int]) -> None:
    wire = b"".join(b"%x\r\n%b\r\n" % (len(data), data) for data in chunks) + b"0\r\n\r\n"
    for end in range(len(wire)):
        framing = Chunked(MAX_TRAILER)
        body, _ = received(framing, cut(wire[:end], places))
        assert b"".join(chunks).startswith(body)
        assert not framing.ended
        with pytest.raises(RemoteProtocolError, match=CUT):
            framing.closed()


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (b"\r\n", r"its answer has the chunk size b'\r\n'"),
        (b"g\r\n", r"its answer has the chunk size b'g\r\n'"),
        (b"-1\r\n", r"its answer has the chunk size b'-1\r\n'"),
        (b"+5\r\nhello\r\n", r"its answer has the chunk size b'+5\r\nhello\r\n'"),
        (b"0x5\r\nhello\r\n", r"its answer has the chunk size b'0x5\r\nhello\r\n'"),
        (b"1_0\r\n", r"its answer has the chunk size b'1_0\r\n'"),
        (b" 5\r\nhello\r\n", r"its answer has the chunk size b' 5\r\nhello\r\n'"),
        (b"5\nhello\r\n", r"its answer has the chunk size b'5\nhello\r\n'"),
        (b"5 5\r\nhello\r\n", r"its answer has the chunk size b'5 5\r\nhello\r\n'"),
        (b"11111111111111111\r\n", r"its answer has the chunk size b'11111111111111111\r\n'"),
        (b"5\r\nhello5\r\nhello\r\n", r"its answer has the chunk size b'5\r\nhello\r\n'"),
        (b"5\r\nhelloX", r"its answer has the chunk size b'X'"),
        (b"5\r\nhello!\r\n0\r\n\r\n", r"its answer has the chunk size b'!\r\n0\r\n\r\n'"),
        (b"5\r\nhello\r\n5;" + b"x" * 4100, r"its answer has the chunk size b'\r\n5;xxxxxxxxxxxxxxxx'"),
        (b"0\r\nno trailer\r\n\r\n", "its answer has invalid trailers"),
        (b"0\r\nA: 1\r\n" * 1 + b"B: 2\r\n" * 50, "its answer has invalid trailers"),
    ],
)
def test_a_framing_that_is_wrong_is_refused(wire: bytes, message: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        received(Chunked(MAX_TRAILER), [wire])
    assert str(caught.value) == message
    with pytest.raises(RemoteProtocolError):
        received(Chunked(MAX_TRAILER), [wire[at : at + 1] for at in range(len(wire))])


def test_a_body_of_a_length_ends_there() -> None:
    framing = Length(5)
    assert received(framing, [b"he", b"llo!"]) == (b"hello", b"!")
    assert framing.ended
    assert Length(0).ended
    with pytest.raises(RemoteProtocolError, match=CUT):
        Length(1).closed()


def test_a_body_may_end_with_the_connection() -> None:
    framing = UntilClose()
    assert received(framing, [b"he", b"llo"]) == (b"hello", b"")
    assert not framing.ended
    framing.closed()
    assert framing.ended
