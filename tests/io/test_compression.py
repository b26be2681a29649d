"""Compressed data is read to its end: cut, damaged or of several members, in pieces of any size."""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from svcctl.io.compression import COMPRESSIONS, Compressed, DamagedCompression, check, compressions, gunzip, inflate

Reader = Callable[[Iterable[bytes]], Iterator[bytes]]


class Kept:
    """A sink that keeps the pieces."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, data: bytes | memoryview, /) -> None:
        self.pieces.append(bytes(data))


def compressed(ending: str, data: bytes) -> bytes:
    kept = Kept()
    sink = Compressed(kept, COMPRESSIONS[ending]())
    sink.write(data[: len(data) // 2])
    sink.write(data[len(data) // 2 :])
    sink.end()
    return b"".join(kept.pieces)


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


TEXT = b"a,b\n" + b"".join(b"%d,%d\n" % (number, number**3) for number in range(500))


def test_files_are_what_other_programs_read() -> None:
    assert gzip.decompress(compressed(".gz", TEXT)) == TEXT
    assert zstandard.ZstdDecompressor().decompressobj().decompress(compressed(".zst", TEXT)) == TEXT


@pytest.mark.parametrize("ending", COMPRESSIONS)
@pytest.mark.parametrize("size", [1, 1000, 1 << 20])
def test_a_whole_file_of_one_or_more_members_passes_the_check(ending: str, size: int) -> None:
    one = compressed(ending, TEXT)
    check(ending, in_pieces(one, size))
    check(ending, in_pieces(one + compressed(ending, b"") + one, size))


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_a_file_that_is_cut_anywhere_does_not_pass(ending: str) -> None:
    data = compressed(ending, TEXT)
    for at in range(len(data)):
        with pytest.raises(DamagedCompression, match=r"^ends in the middle$"):
            check(ending, [data[:at]])


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_a_file_with_a_wrong_byte_does_not_pass(ending: str) -> None:
    data = compressed(ending, TEXT)
    for at in range(len(data) // 2, len(data)):
        with pytest.raises(DamagedCompression):
            check(ending, [data[:at], bytes([data[at] ^ 1]), data[at + 1 :]])


def test_a_file_that_is_not_compressed_needs_no_check() -> None:
    check(".csv", [b"anything"])


@pytest.mark.parametrize("size", [1000, 1 << 14, 1 << 16, 1 << 20])
def test_members_that_end_within_a_piece_after_more_text_than_fits_in_one_come_back(size: int) -> None:
    text = TEXT * 60  # several times what is decompressed at once, and its member ends before the data does
    members = b"".join(compressed(".gz", part) for part in (text, b"", text[:70_000], text))
    assert b"".join(gunzip(in_pieces(members, size))) == text + text[:70_000] + text


@pytest.mark.parametrize("bits", [-15, 15])
def test_bytes_after_a_deflate_stream_of_much_text_are_damage(bits: int) -> None:
    compressor = zlib.compressobj(wbits=bits)
    sent = compressor.compress(TEXT * 60) + compressor.flush()
    with pytest.raises(DamagedCompression, match=r"^is damaged$"):
        b"".join(inflate([sent + b"more"]))


@given(st.binary(max_size=300), st.integers(1, 50), st.sampled_from([-15, 15, 31]))
def test_any_bytes_come_back(data: bytes, size: int, bits: int) -> None:
    compressor = zlib.compressobj(wbits=bits)
    sent = compressor.compress(data) + compressor.flush()
    reader: Reader = gunzip if bits == 31 else inflate
    assert b"".join(reader(in_pieces(sent, size))) == data


@pytest.mark.slow
@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_a_file_that_grows_a_thousandfold_is_checked_in_bounded_memory(ending: str) -> None:
    kept = Kept()
    sink = Compressed(kept, COMPRESSIONS[ending]())
    for _ in range(200):
        sink.write(b"x" * 1_000_000)
    sink.end()
    tracemalloc.start()
    check(ending, kept.pieces)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000_000


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("", []),
        ("identity", []),
        ("UTF-8", []),
        ("utf8, Identity", []),
        ('charset="utf-8"', []),
        ("ISO-8859-1", []),
        ("windows-1252", []),
        ("us-ascii", []),
        ("none", []),
        ("text/csv", []),
        ("application/json; charset=UTF-8, gzip", ["gzip"]),
        ("binary", []),
        ("gzip", ["gzip"]),
        (" X-GZIP ,utf-8, deflate", ["x-gzip", "deflate"]),
        ("br", ["br"]),
        ("aws-chunked", ["aws-chunked"]),
        ("utf-8z", ["utf-8z"]),
    ],
)
def test_a_charset_or_a_media_type_in_content_encoding_is_no_compression(header: str, names: list[str]) -> None:
    assert compressions(header) == names
