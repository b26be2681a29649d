"""The rows of csv, wherever the blocks are cut in which it is read."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.loads import UNLIMITED

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.syntax import LINE, SHORT_ROW
from svcctl.service.loading.csv import batches, heading
from svcctl.service.loading.decompression import Source
from svcctl.service.loading.skips import Aside, Skip, Tally

Row = tuple[str | None, ...]


def read(data: bytes, block_size: int = 1 << 16, longest: int = 1 << 16) -> tuple[list[tuple[int, Row]], Tally]:
    """The rows with the numbers of their lines, and what was skipped."""
    tally = Tally()
    found: list[tuple[int, Row]] = []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "a.csv"
        path.write_bytes(data)
        head = heading(path.name, data, None)
        for batch in batches(Source(path, path.name), head, tally, UNLIMITED, block_size, longest):
            for row in batch.to_pylist():
                is_short = row.pop(SHORT_ROW)
                found.append((row.pop(LINE), tuple(row.values())))
                assert not is_short or row.popitem()[1] is None
    tally.settle()
    return found, tally


CELLS = st.text(st.sampled_from('ab ",;\\\n\ufeffé'), max_size=4)


@pytest.mark.slow
@given(
    st.lists(st.tuples(CELLS, CELLS), max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.integers(1, 9),
)
@settings(max_examples=80)
def test_cells_are_what_was_written_whatever_the_size_of_a_block(
    rows: list[tuple[str, str]], end: str, is_quoted: bool, block_size: int
) -> None:
    text = io.StringIO()
    is_quoted |= end == "\r"  # otherwise the writer leaves \n without quotes
    writer = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL if is_quoted else csv.QUOTE_MINIMAL)
    line, expected = 2, []
    writer.writerow(("n,1", "m"))
    for row in rows:
        writer.writerow(row)
        expected.append((line, tuple(cell if cell or is_quoted else None for cell in row)))
        line += 1 + sum(cell.count("\n") for cell in row)
    assert read(text.getvalue().encode(), block_size) == (expected, Tally())


@pytest.mark.parametrize("block_size", [1, 2, 3, 5, 8, 1000])
def test_blanks_behind_separators_are_no_part_of_cells_where_every_name_has_them(block_size: int) -> None:
    text = b'time, n, "b, c", \xc3\xa9 f\n1,  2, "a, ""b"", c"  , x y \n 2, "3\n, 4" ,, \n'
    assert read(text, block_size)[0] == [(2, ("1", "2", 'a, "b", c  ', "x y ")), (3, (" 2", "3\n, 4 ", None, None))]
    assert read(b"time, n,m\n1, 2, 3\n", block_size)[0] == [(2, ("1", " 2", " 3"))]


@pytest.mark.parametrize("block_size", [1, 2, 3, 5, 8, 1000])
@pytest.mark.parametrize("blank", [b"", b" "])
def test_a_quote_that_would_join_lines_and_ends_inside_a_cell_is_not_closed(block_size: int, blank: bytes) -> None:
    text = b'n,m\n1,"a\n2,b"c\n"3" d,"e"\n"4"" f,\n5,"g"",\n6,"h""\n\ni" j\n7,"k\nl"\n'.replace(b",", b"," + blank)
    rows, tally = read(text, block_size)
    assert rows == [(3, ("2", 'b"c')), (4, ("3 d", "e")), (9, ('i" j', None)), (10, ("7", "k\nl"))]
    assert tally.findings[Skip.QUOTE][:2] == (4, 2)


@pytest.mark.parametrize("text", [b'time, n, "b, c"\n', b'time , n,"b, c"\n', b"time; n;  b, c\n"])
def test_names_have_no_blanks_around_them(text: bytes) -> None:
    assert heading("a.csv", text, None).names == ("time", "n", "b, c")


@given(
    st.sampled_from([b"n,m\n", b"n, m\n"]),
    st.lists(st.sampled_from([b"a", b" ", b'"', b",", b"\n", b"\r\n", b"\xff", b"\xef\xbb\xbf"]), max_size=30),
)
@settings(max_examples=80)
def test_every_line_is_in_a_row_or_is_skipped(names: bytes, pieces: list[bytes]) -> None:
    data = names + b"".join(pieces)
    rows, tally = read(data)
    assert (rows, tally) == read(data, block_size=3)
    filled = sum(bool(line) for line in data.splitlines()[1:])
    inside = sum(cell.count("\n") for _, row in rows for cell in row if cell)
    assert filled - inside <= len(rows) + sum(count for count, *_ in tally.findings.values()) <= data.count(b"\n")


@pytest.mark.parametrize("block_size", [3, 1 << 16])
def test_a_quote_with_a_backslash_before_it_is_refused_if_it_does_not_end_its_cell(block_size: int) -> None:
    head = b'n,m\n"C:\\a\\",\\"x\n"{""a"":""\\""b""}","\\"""\n"\\\n",1\n'
    assert [row for _, row in read(head, block_size)[0]] == [
        ("C:\\a\\", '\\"x'),
        ('{"a":"\\"b"}', '\\"'),
        ("\\\n", "1"),
    ]
    for line in (b'a,"b \\"c\\", d"\n', b'"\\"c",d\r\n', b'"a\nb\\"c",d\n'):
        with pytest.raises(
            UsageError, match=r"^line [67] of a\.csv has a quote with a backslash before it: "
        ) as caught:
            read(head + line, block_size)
        with pytest.raises(UsageError, match=r"^line [34] of "):
            read(b"n,m\r1,2\r" + line.replace(b"\r\n", b"\n").replace(b"\n", b"\r"), block_size)
        assert caught.value.reason == "escaped-quote"


@pytest.mark.parametrize(
    ("text", "rows", "skipped"),
    [
        (b'n,m\n1,"2\n3,4\n', [(3, ("3", "4"))], {Skip.QUOTE: (1, 2, '1,"2\n')}),
        (b'n,m\n1,"' + b"\n" * 40 + b'"\n3,4\n', [(43, ("3", "4"))], {Skip.LONG: (41, 2, None)}),
        (b"n,m\n1," + b"x" * 99 + b"\n3,4", [(3, ("3", "4"))], {Skip.LONG: (1, 2, None)}),
        (
            b"n,m\n1\n\n1,2,3\n4,\xff\n5,6\n",
            [(2, ("1", None)), (6, ("5", "6"))],
            {
                Aside.BLANK: (1, 3, None),
                Skip.CELLS: (1, 4, "1,2,3\n"),
                Skip.ENCODING: (1, 5, "4,\N{REPLACEMENT CHARACTER}\n"),
            },
        ),
        (b"n,m\n1,2\n3", [(2, ("1", "2"))], {Skip.ENTRY: (1, 3, "3\n")}),
        (b"n,m\n1\n2,3\n4", [(2, ("1", None)), (3, ("2", "3")), (4, ("4", None))], {}),
        (b"n,m\n1", [(2, ("1", None))], {}),
        (b'n,m,o\n"1\n1"\r\n2,\r\n', [(2, ("1\n1", None, None)), (4, ("2", None, None))], {}),
        (b'\xef\xbb\xbf\n\n"n;\n1";m\n"a"b;c"d\n', [(5, ("ab", 'c"d'))], {Aside.BLANK: (2, 1, None)}),
    ],
)
def test_short_rows_are_filled_and_what_is_no_row_is_skipped_with_its_line(
    text: bytes, rows: list[tuple[int, Row]], skipped: dict[Skip | Aside, tuple[int, int, str | None]]
) -> None:
    found, tally = read(text, longest=32)
    assert found == rows
    counts = {what: finding[:2] for what, finding in tally.findings.items()}
    assert counts == {what: finding[:2] for what, finding in skipped.items()}
    assert all(tally.findings[what][2] == value for what, (*_, value) in skipped.items() if value is not None)
