"""Tables and vertical blocks, as they appear on a screen."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from itertools import chain
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from support.clock_changes import ZONES, clock_changes, offset

from svcctl.api.formats.batches import Batches
from svcctl.terminal.formats import FORMATS
from svcctl.terminal.layout import Cuts, Style, TableColumn, format_cell, table, vertical

COLUMNS = [TableColumn("eventdate", "timestamp"), TableColumn("user", "str"), TableColumn("n", "int8")]
ROWS = [(1539009192000, "ana", 5), (1539009193000, "[bob] 漢字", 1234), (1539009194000, None, None)]


def lines_of(columns: list[TableColumn], rows: Iterable[Sequence[object]], style: Style, cuts: Cuts) -> list[str]:
    return list(chain.from_iterable(table(columns, rows, style, cuts)))


def lay_out(columns: list[TableColumn], rows: Iterable[tuple[object, ...]], style: Style) -> tuple[list[str], Cuts]:
    cuts = Cuts()
    return lines_of(columns, rows, style, cuts), cuts


def test_a_table_aligns_numbers_right_and_keeps_brackets_and_wide_characters() -> None:
    lines, cuts = lay_out(COLUMNS, ROWS, Style())
    assert lines == [
        "eventdate            user           n",
        "-------------------  ----------  ----",
        "2018-10-08 14:33:12  ana            5",
        "2018-10-08 14:33:13  [bob] 漢字  1234",
        "2018-10-08 14:33:14  null        null",
    ]
    assert (cuts.cells, cuts.columns) == (0, [])


def test_the_points_of_numbers_are_below_each_other() -> None:
    columns = [TableColumn("mean", "float8"), TableColumn("share", "float8")]
    lines, _ = lay_out(columns, [(219.4, 0.5), (93.33331, 12.25), (5.0, None), (1e300, 100.0)], Style())
    assert lines[2:] == [
        "   219.4       0.5",
        "    93.3333   12.25",
        "     5.0       null",
        "1e+300       100.0",
    ]


def test_milliseconds_are_shown_where_there_are_any() -> None:
    lines, _ = lay_out(COLUMNS[:1], [(1539009192000,), (1539009192007,)], Style())
    assert lines[2:] == ["2018-10-08 14:33:12.000", "2018-10-08 14:33:12.007"]


def test_the_zone_moves_dates_and_is_named_in_the_heading() -> None:
    style = Style(zone=timezone(timedelta(hours=2)), zone_label="GMT+2", date_format="iso")
    lines, _ = lay_out(COLUMNS[:1], [(1539009192000,)], style)
    assert lines == ["eventdate (GMT+2)", "------------------------", "2018-10-08T16:33:12+0200"]


@settings(max_examples=50)
@given(name=st.sampled_from(ZONES), data=st.data())
def test_each_row_around_a_clock_change_has_the_offset_that_its_zone_has_then(name: str, data: st.DataObject) -> None:
    change = data.draw(st.sampled_from(clock_changes(name)))
    apart = st.integers(-9000, 9000) | st.integers(-90_000, 90_000)
    values = [1000 * change + data.draw(st.sampled_from([0, 7]))]
    values += [1000 * (change + seconds) for seconds in data.draw(st.lists(apart, max_size=20))]
    zone = ZoneInfo(name)
    for style in (Style(zone=zone, offsets=True), Style(zone=zone, date_format="iso")):
        rows = [(value,) for value in values]
        lines, _ = lay_out(COLUMNS[:1], rows, style._replace(header=False))
        blocks = [line.split(maxsplit=1)[1] for line in vertical(COLUMNS[:1], rows, style) if line.startswith("event")]
        for texts in (lines, blocks):
            written = [datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", "")) for text in texts]
            assert [round(1000 * moment.timestamp()) for moment in written] == values
            assert [moment.utcoffset() for moment in written] == [offset(value // 1000, name) for value in values]


def test_columns_of_rows_that_arrive_later_are_as_wide_as_dates_with_an_offset() -> None:
    style = Style(zone=ZoneInfo("Europe/Berlin"), offsets=True, sample=0)
    lines, _ = lay_out(COLUMNS[::2], [(1539009192000, 5)], style)
    assert lines == [
        "eventdate                                 n",
        "-----------------------------  ------------",
        "2018-10-08 16:33:12.000 +0200             5",
    ]


def test_a_narrow_terminal_cuts_the_widest_cells_and_counts_them() -> None:
    columns = [TableColumn("a", "str"), TableColumn("b", "str")]
    lines, cuts = lay_out(columns, [("x" * 30, "short"), ("y", "z" * 40)], Style(width=30))
    assert lines == [
        "a               b",
        "--------------  --------------",
        "xxxxxxxxxxxxx…  short",
        "y               zzzzzzzzzzzzz…",
    ]
    assert (cuts.cells, cuts.columns) == (2, [])


def test_a_column_below_the_row_is_whole_on_a_line_of_its_own() -> None:
    columns = [TableColumn("id", "id"), TableColumn("error", below=True), TableColumn("text"), TableColumn("n", "int8")]
    rows = [("a", "x" * 40, "y" * 40, 1), ("b", None, "z", 2), ("c", "漢字\n", "z", 3)]
    lines, cuts = lay_out(columns, rows, Style(width=30))
    assert lines == [
        "id  text                     n",
        "--  -----------------------  -",
        "a   yyyyyyyyyyyyyyyyyyyyyy…  1",
        f"  error: {'x' * 40}",
        "b   z                        2",
        "c   z                        3",
        "  error: 漢字\\n",
    ]
    assert (cuts.cells, cuts.columns) == (1, [])
    assert lay_out(columns[1:2], [("x" * 40,)], Style(width=30))[0] == ["error", "-" * 30, "x" * 40]
    without_width = lay_out(columns[:2], [row[:2] for row in rows[:1]], Style())[0]
    assert without_width == ["id  error", f"--  {'-' * 40}", f"a   {'x' * 40}"]


def test_columns_that_do_not_fit_at_all_are_left_out_and_named() -> None:
    columns = [TableColumn(name, "str") for name in "abcd"]
    lines, cuts = lay_out(columns, [("x" * 20,) * 4], Style(width=27))
    assert lines == ["a              b", "-------------  ------------", "xxxxxxxxxxxx…  xxxxxxxxxxx…"]
    assert cuts.columns == ["c", "d"]


def test_dates_and_numbers_are_whole_or_left_out() -> None:
    columns = [TableColumn("eventdate", "timestamp"), TableColumn("uri", "str"), TableColumn("n", "int8")]
    row = (1539009192000, "/" * 40, 10**12)
    lines, cuts = lay_out(columns, [row], Style(width=50))
    assert lines[2] == "2018-10-08 14:33:12  /////////////…  1000000000000"
    assert (cuts.cells, cuts.columns) == (1, [])
    lines, cuts = lay_out(columns, [row], Style(width=40))
    assert lines[2] == "2018-10-08 14:33:12  //////////////////…"
    assert (cuts.cells, cuts.columns) == (1, ["n"])


def test_colour_marks_the_heading_only() -> None:
    lines, _ = lay_out([TableColumn("a")], [("x",)], Style(color=True))
    assert lines == ["\x1b[1ma\x1b[0m", "-", "x"]


def test_no_rows_leave_the_heading() -> None:
    assert lay_out(COLUMNS, [], Style())[0] == ["eventdate  user  n", "---------  ----  -"]


def test_rows_after_the_sample_are_printed_as_they_come() -> None:
    taken: list[int] = []

    def rows() -> Iterator[tuple[int]]:
        for number in range(5):
            taken.append(number)
            yield (number,)

    lines = chain.from_iterable(table([TableColumn("n", "int4")], rows(), Style(sample=2), Cuts()))
    assert [next(lines) for _ in range(3)] == ["n", "-", "0"]
    assert taken == [0, 1]
    assert list(lines) == ["1", "2", "3", "4"]


def test_columns_grow_into_the_rest_of_the_line_for_rows_after_the_sample_and_no_number_is_cut() -> None:
    columns = [TableColumn("uri", "str"), TableColumn("n", "int8")]
    rows = [("/help", 1), ("/search?q=", 234567), ("/a/path/of/some/length", 7), ("/", 12345678901234)]
    cuts = Cuts()
    assert lines_of(columns, rows, Style(width=30, sample=1), cuts) == [
        "uri                    n",
        "---------------  -------",
        "/help                  1",
        "/search?q=        234567",
        "/a/path/of/som…        7",
        "/                12345678901234",
    ]
    assert cuts.cells == 1
    assert lines_of(columns, rows[:1], Style(width=30, sample=1), cuts) == ["uri    n", "-----  -", "/help  1"]
    texts = [
        (first, second) for (first, _), second in zip(rows, ("a", "b", "a text for the rest of it", "d"), strict=True)
    ]
    both = [TableColumn("uri", "str"), TableColumn("text", "str")]
    assert lines_of(both, texts, Style(width=30, sample=1), cuts)[2:] == [
        "/help           a",
        "/search?q=      b",
        "/a/path/of/so…  a text for th…",
        "/               d",
    ]


def test_without_a_sample_widths_come_from_the_types_and_the_first_row() -> None:
    lines = lines_of(COLUMNS, iter(ROWS[:1]), Style(width=60, sample=0), Cuts())
    assert lines == [
        "eventdate                user                              n",
        "-----------------------  ---------------------  ------------",
        "2018-10-08 14:33:12.000  ana                               5",
    ]
    columns = [TableColumn(name, kind) for name, kind in (("method", "str"), ("uri", "str"), ("n", "int4"))]
    rows = [("GET", "/search?q=books,new", 7), ("DELETE", "/products/books/364", None)]
    assert lines_of(columns, rows, Style(width=40, sample=0), Cuts()) == [
        "method    uri                          n",
        "--------  ------------------  ----------",
        "GET       /search?q=books,n…           7",
        "DELETE    /products/books/3…        null",
    ]


def test_cut_values_are_noted_when_a_followed_query_is_interrupted() -> None:
    def rows() -> Iterator[tuple[str, int]]:
        yield "a text that is much longer than its column", 5
        raise KeyboardInterrupt

    notes: list[str] = []
    columns = [TableColumn("text", "str"), TableColumn("n", "int8"), TableColumn("out", "int8")]
    lines = FORMATS["table"].write(columns, ((*row, 1) for row in rows()), Style(width=30, sample=0), notes.append)
    next(lines)
    columns_told = ["left out columns that do not fit: out (--format vertical shows them)"]
    assert notes == columns_told
    with pytest.raises(KeyboardInterrupt):
        list(lines)
    assert notes == [
        *columns_told,
        "1 cell was cut to fit (--format vertical or csv shows them in full)",
    ]


def test_vertical_gives_a_line_a_column() -> None:
    assert list(vertical(COLUMNS, ROWS[:1], Style())) == [
        "row 1",
        "eventdate  2018-10-08 14:33:12.000",
        "user       ana",
        "n          5",
    ]


def test_values_are_written_for_people() -> None:
    style = Style()
    cells = [
        (None, "str", "null"),
        ("", "str", ""),
        (True, "bool", "true"),
        (2**63 - 1, "int8", "9223372036854775807"),
        (3.3333333333, "float8", "3.3333"),
        (0.0000123456, "float8", "1.235e-05"),
        (167772161, "ip4", "10.0.0.1"),
        ("10.0.0.1", "ip4", "10.0.0.1"),
        (10**18, "timestamp", "1000000000000000000"),
        ([1], None, "[1]"),
        (["x", None, True], None, '["x", null, true]'),
        ({"x": [1]}, "map", '{"x": [1]}'),
        (float("nan"), "float8", "NaN"),
        (float("inf"), "float8", "Infinity"),
    ]
    assert [(value, kind, format_cell(value, kind, style)) for value, kind, _ in cells] == cells


@given(
    st.lists(st.lists(st.text(max_size=40), min_size=3, max_size=3), max_size=8),
    st.integers(20, 120),
)
def test_no_line_is_wider_than_the_terminal(rows: list[list[str]], width: int) -> None:
    columns = [TableColumn(name, "str") for name in ("one", "two", "three")]
    for line in lines_of(columns, rows, Style(width=width, zone=UTC), Cuts()):
        assert cell_len(line) <= width


def test_a_column_may_keep_more_cells_at_the_cost_of_later_columns_and_colour_some_values() -> None:
    columns = [
        TableColumn("status", "id", marks={"FAILING": 31}),
        TableColumn("error", least=20),
        TableColumn("query"),
    ]
    row = ("FAILING", "connection refused by the broker", "from a where b = 1")
    lines, cuts = lay_out(columns, [row], Style(width=40))
    assert (lines[2], cuts.columns) == ("FAILING  connection refused by the brok…", ["query"])
    lines, cuts = lay_out(columns, [row], Style(width=44))
    assert (lines[2], cuts.columns) == ("FAILING  connection refused …  from a where…", [])
    lines, _ = lay_out(columns, [row, ("RUNNING", "FAILING", "")], Style(color=True))
    assert lines[2].startswith("\x1b[31mFAILING\x1b[0m  connection")
    assert lines[3].startswith("RUNNING  FAILING ")


TEXTS = st.text(max_size=30) | st.text("ab c\n", max_size=30)
VALUES = {
    "timestamp": st.integers(-(10**13), 10**13) | st.just(10**18),
    "str": TEXTS,
    "id": TEXTS,
    "int8": st.integers(-(2**63), 2**63 - 1),
    "float8": st.floats(allow_nan=False, allow_infinity=False),
    "ip4": st.integers(0, 2**32 - 1) | st.just("10.0.0.1"),
    "bool": st.booleans(),
}


@given(st.data(), st.none() | st.integers(20, 120), st.integers(0, 4))
def test_rows_that_come_together_are_laid_out_as_those_that_come_one_by_one(
    data: st.DataObject, width: int | None, sample: int
) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5))
    rows = data.draw(st.lists(st.tuples(*(st.none() | VALUES[kind] for kind in kinds)), max_size=12))
    columns = [TableColumn(f"c{at}", kind) for at, kind in enumerate(kinds)]
    style, cuts, of_batches = Style(width=width, sample=sample), Cuts(), Cuts()
    batches = Batches([rows[:3], rows[3:5], rows[5:]])
    assert lines_of(columns, batches, style, of_batches) == lines_of(columns, iter(rows), style, cuts)
    assert of_batches == cuts
    for format in ("csv", "tsv", "ndjson", "json"):
        one_by_one = list(FORMATS[format].write(columns, iter(rows), style, print))
        assert list(FORMATS[format].write(columns, Batches([rows[:3], rows[3:]]), style, print)) == one_by_one
