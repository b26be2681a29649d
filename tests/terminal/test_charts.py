"""Charts, as they appear on a screen and in a pipe."""

from __future__ import annotations

import re
from datetime import timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from svcctl.errors import UsageError
from svcctl.terminal.charts import draw
from svcctl.terminal.charts.axes import short, time_axis
from svcctl.terminal.charts.chart import MAX_ROWS
from svcctl.terminal.layout import Span, Style, TableColumn

# What the notes and errors say, each once.
WORDS = {
    "cut labels": "1 label was cut to fit (--format vertical or csv shows it in full)",
    "not drawn for users": "not drawn: bytes (--columns user,bytes draws it)",
    "not drawn for dates": "not drawn: bytes (--columns eventdate,bytes draws it)",
    "too many series": "the chart shows the 8 of 11 series with the largest sums",
    "not numbers": "2 values are not numbers or are too large to draw",
    "no numbers": "a chart needs a number and another column that names the rows; the columns are {there}",
    "too many rows": "more than 5000 rows cannot be charted",
}
HINTS = {
    "no numbers": "group by a column or a period, and select count() as n",
}

USERS = [TableColumn("user", "str"), TableColumn("n", "int8")]
TIMES = [TableColumn("eventdate", "timestamp"), TableColumn("k", "str"), TableColumn("n", "float8")]
TEN = 600_000
HOUR = 3_600_000
START = 1539009000000  # 2018-10-08 14:30:00 UTC
FANCY = Style(width=40, color=True, glyphs=True)


def bare(lines: list[str]) -> list[str]:
    return [re.sub(r"\x1b\[\d*m", "", line) for line in lines]


def test_bars_are_as_long_as_their_numbers_and_aligned() -> None:
    chart = draw(USERS, [("ana", 5), ("[bob] 漢字", 80), ("zoë", None), (None, 0), ("e\x1b[2J", 40)], FANCY)
    assert chart.lines == [
        "\x1b[1mn by user\x1b[0m",
        "ana            5  \x1b[36m█▍\x1b[0m",
        "[bob] 漢字    80  \x1b[36m██████████████████████\x1b[0m",
        "zoë         null",
        "null           0",
        "e\\x1b[2J      40  \x1b[36m███████████\x1b[0m",
    ]
    assert chart.notes == []


def test_without_colour_bars_are_plain_and_labels_whole() -> None:
    chart = draw(USERS, [("a" * 70, 1), ("b", 10), ("c", 1000)], Style())
    assert chart.lines == [
        "n by user",
        "a" * 70 + "     1  #",
        "b" + " " * 69 + "    10  #",
        "c" + " " * 69 + "  1000  ##########",
    ]


def test_labels_that_do_not_fit_are_cut_and_counted() -> None:
    chart = draw(USERS, [("a" * 70, 1), ("b", 2)], Style(width=40))
    assert chart.lines == [
        "n by user",
        "aaaaaaaaaaaaaaaaaaaaaaaa…  1  #####",
        "b                          2  ##########",
    ]
    assert chart.notes == [WORDS["cut labels"]]


def test_bars_below_zero_go_to_the_left() -> None:
    rows = [("a", -50), ("b", 100), ("c", -1), ("d", 1)]
    assert draw(USERS, rows, Style(width=30)).lines == [
        "n by user",
        "a  -50  #######",
        "b  100         ###############",
        "c   -1        #",
        "d    1         #",
    ]
    assert bare(draw(USERS, rows, Style(width=30, color=True, glyphs=True)).lines)[1:] == [
        "a  -50  ███████",
        "b  100         ██████████████▋",
        "c   -1        █",
        "d    1         ▏",
    ]


def test_only_numbers_below_zero_reach_to_the_right_end() -> None:
    assert draw(USERS, [("a", -2), ("b", -1)], Style(width=20)).lines == [
        "n by user",
        "a  -2  #############",
        "b  -1         ######",
    ]


@pytest.mark.parametrize(
    ("columns", "rows", "title"),
    [
        ("status:int4 n:int8", [(200, 5), (404, 5)], "n by status"),
        ("method:str status:int4 n:int8", [("GET", 200, 9), ("GET", 404, 9)], "n by method, status"),
        ("user:str n:int8 m:float8", [("a", 1, 2.0), ("b", 1, 3.0)], "n by user"),
        ("n:int8 user:str", [(1, "a"), (1, "b")], "n by user"),
        ("user:str bytes:int8", [("a", 1), ("a", 1)], "bytes by user"),
        ("ok:bool last:timestamp n:int8", [(True, 1, 1), (False, 2, 2)], "n by ok"),
        ("eventdate:timestamp status:int4 n:int8", [(START, 200, 1), (START, 404, 2)], "n by eventdate, status"),
        ("eventdate:timestamp n:int8 m:int8", [(START, 1, 1), (START + TEN, 1, 2)], "n by eventdate"),
    ],
)
def test_the_first_number_that_is_no_part_of_a_rows_name_is_drawn(
    columns: str, rows: list[tuple[object, ...]], title: str
) -> None:
    made = [TableColumn(name, type_) for name, _, type_ in (column.partition(":") for column in columns.split())]
    assert draw(made, rows, Style()).lines[0] == title


def test_a_key_of_the_query_is_not_measured_even_if_the_rows_do_not_need_it() -> None:
    columns = [TableColumn("user", "str"), TableColumn("hour", "int4"), TableColumn("n", "int8")]
    chart = draw(columns, [("ana", 3, 7)], Style(keys=("user", "hour")))
    assert (chart.lines[0], chart.notes) == ("n by user, hour", [])
    only = draw(columns[:2], [("ana", 3)], Style(keys=("user", "hour")))
    assert (only.lines[0], only.notes) == ("hour by user", [])


def test_a_number_that_is_not_drawn_is_noted_with_its_option() -> None:
    columns = [TIMES[0], *(TableColumn(name, "float8") for name in ("p95", "med", "most"))]
    rows = [(START, 9.0, 5.0, 10.0), (START + TEN, 8.0, 4.0, 10.0)]
    note = "not drawn: med, most (--columns eventdate,med draws med)"
    assert draw(columns, rows, Style()).notes == [note]
    users = [*USERS, TableColumn("bytes", "int8"), TableColumn("last", "timestamp")]
    assert draw(users, [("ana", 5, 7, START), ("bob", 8, 7, START)], FANCY).notes == [WORDS["not drawn for users"]]


def test_over_time_numbers_of_a_similar_size_are_drawn_together_and_others_named() -> None:
    columns = [TIMES[0], *(TableColumn(name, "float8") for name in ("p95", "bytes", "none", "med"))]
    rows = [(START, 8.0, 321.0, 0.0, 4.0), (START + TEN, 8.0, 5.0, 0.0, 0.0)]
    chart = draw(columns, rows, Style(width=30, color=False, glyphs=False))
    assert chart.lines == [
        "p95, none, med by eventdate",
        "A p95  B none  C med",
        "10+",
        "  |AaaaaaaaaaaaaaaaaaaaaaaaaaA",
        "  |",
        "  |",
        " 5+ccccc",
        "  |     cccccccc",
        "  |             ccccccccc",
        " 0+bbbbbbbbbbbbbbbbbbbbbbccccC",
        "  ++------------+------------+",
        "   14:30        14:35    14:40",
        "   2018-10-08",
    ]
    assert chart.notes == [WORDS["not drawn for dates"]]
    alone = draw(columns[:3], [row[:3] for row in rows], Style(width=30))
    assert (alone.lines[0], alone.notes) == (
        "p95 by eventdate",
        ["not drawn: bytes (--columns eventdate,bytes draws it)"],
    )


def test_buckets_are_a_line_a_series_and_a_missing_bucket_is_a_gap() -> None:
    rows = [
        (START, "a", 1.0),
        (START, "b", 4.0),
        (START + TEN, "a", 3.0),
        (START + TEN, "b", None),
        (START + 3 * TEN, "a", 2.0),
    ]
    chart = draw(TIMES, rows, FANCY)
    assert chart.lines == [
        "\x1b[1mn by eventdate, k\x1b[0m",
        "\x1b[36m●\x1b[0m a  \x1b[35m■\x1b[0m b",
        "4┤\x1b[35m■\x1b[0m",
        " │",
        " │          \x1b[36m⡠⠔●\x1b[0m",
        " │      \x1b[36m⢀⡠⠒⠉\x1b[0m",
        "2┤   \x1b[36m⣀⠤⠊⠁\x1b[0m                              \x1b[36m●\x1b[0m",
        " │\x1b[36m●⠔⠊\x1b[0m",
        " │",
        "0┤",
        " └┬───────────┬────────────┬───────────┬",
        "  14:30       14:40        14:50   15:00",
        "  2018-10-08",
    ]
    assert draw(TIMES, rows, Style()).lines == [
        "n by eventdate, k",
        "2018-10-08 14:30:00  a   1.0  ############",
        "2018-10-08 14:30:00  b   4.0  ##################################################",
        "2018-10-08 14:40:00  a   3.0  ######################################",
        "2018-10-08 14:40:00  b  null",
        "2018-10-08 15:00:00  a   2.0  #########################",
    ]


def test_the_zone_moves_the_time_axis_and_a_new_day_is_dated() -> None:
    columns = [TIMES[0], TIMES[2]]
    style = Style(width=60, color=True, glyphs=True, zone=timezone(timedelta(hours=2)), zone_label="GMT+2")
    rows = [(START + 6 * hour * TEN, 100.0 + hour) for hour in range(20)]
    assert bare(draw(columns, rows, style).lines) == [
        "n by eventdate (GMT+2)",
        "120┤                                                      ⣀⡠",
        "   │                                                 ⣀⡠⠤⠒⠊",
        "   │                                            ⢀⡠⠔⠊⠉",
        "   │                                       ⣀⡠⠤⠒⠊⠁",
        "   │                                  ⢀⣀⠔⠒⠉",
        "   │                              ⡠⠤⠒⠉⠁",
        "110┤                        ⢀⣀⠤⠔⠊⠉",
        "   │                    ⣀⡠⠒⠊⠁",
        "   │              ⢀⡠⠤⠒⠊⠉",
        "   │          ⣀⠤⠔⠉⠁",
        "   │    ⢀⣀⠤⠒⠊⠉",
        "100┤⣀⠤⠔⠒⠁",
        "   └────┬─────────────────┬────────────────┬────────────────",
        "        18:00             00:00            06:00",
        "        2018-10-08        2018-10-09",
    ]


def test_a_date_makes_room_for_the_next_one() -> None:
    morning = START - 17 * HOUR // 2
    assert list(time_axis(morning, morning + 48 * HOUR, 41, FANCY)) == [
        "└─────┬─────────┬─────────┬─────────┬─────",
        "      12:00     00:00     12:00     00:00",
        "     2018-10-08 2018-10-09      2018-10-10",
    ]


BERLIN = Style(width=60, glyphs=True, zone=ZoneInfo("Europe/Berlin"), offsets=True)
AUTUMN, SPRING = (1000 * change for change in (1_729_990_800, 1_711_846_800))


@pytest.mark.parametrize(
    ("start", "hours", "axis"),
    [
        (
            AUTUMN - HOUR,
            3,
            [
                "└┬─────────┬─────────┬─────────┬────────┬─────────┬─────────┬",
                " 02:00     02:30     02:00     02:30    03:00     03:30 04:00",
                " 2024-10-27          +0100",
            ],
        ),
        (
            AUTUMN - 3 * HOUR,
            49,
            [
                "└┬───────────────┬─────────────┬──────────────┬─────────────┬",
                " 00:00           12:00         00:00          12:00     00:00",
                " 2024-10-27      +0100         2024-10-28          2024-10-29",
            ],
        ),
        (
            SPRING - 2 * HOUR,
            9,
            [
                "└┬────────────┬──────┬────────────┬────────────┬─────────────",
                " 00:00        03:00  04:00        06:00        08:00",
                " 2024-03-31   +0200",
            ],
        ),
        (
            AUTUMN - 51 * HOUR,
            168,
            [
                "└────────┬─────────────────┬────────────────┬────────────────",
                "         10-26             10-28            10-30",
                "         2024",
            ],
        ),
    ],
)
def test_ticks_stay_at_round_times_and_offsets_tell_apart_what_the_clocks_show_twice(
    start: int, hours: int, axis: list[str]
) -> None:
    assert list(time_axis(start, start + hours * HOUR, 60, BERLIN)) == axis


def test_one_bucket_is_a_sign() -> None:
    assert bare(draw([TIMES[0], TIMES[2]], [(START, 5.0)], FANCY).lines) == [
        "n by eventdate",
        "5┤●",
        *[" │"] * 6,
        "0┤",
        " └┬" + "─" * 37,
        "  14:30:00",
        "  2018-10-08",
    ]


def test_the_largest_of_many_series_are_drawn_and_the_rest_counted() -> None:
    rows = [(START + bucket * TEN, f"s{index}", index) for bucket in range(3) for index in range(11)]
    chart = draw(TIMES, rows, Style(width=60, color=True, glyphs=True))
    assert bare(chart.lines)[1] == "● s10  ■ s3  ▲ s4  ◆ s5  ▼ s6  ★ s7  ◀ s8  ▶ s9"
    assert chart.notes == [WORDS["too many series"]]


def test_series_are_in_the_order_of_their_values_unless_the_rows_were_sorted() -> None:
    rows = [(START, 404, 1), (START + TEN, 90, 1), (START + TEN, 200, 1), (START + TEN, 404, 1), (START + TEN, None, 1)]
    columns = [TIMES[0], TableColumn("statusCode", "int4"), TIMES[2]]
    assert bare(draw(columns, rows, FANCY).lines)[1] == "● 90  ■ 200  ▲ 404  ◆ null"
    assert bare(draw(columns, rows[::-1], FANCY).lines)[1] == "● null  ■ 404  ▲ 200  ◆ 90"


def test_no_rows_are_no_chart() -> None:
    assert draw(USERS, [], FANCY).lines == []
    assert draw(TIMES, [], FANCY).lines == []


GAP_ROWS = [(START - START % HOUR + hour * HOUR, number) for hour, number in ((1, 3.0), (2, 4.0), (5, 2.0), (6, 1.0))]
ASKED = Span(START + 40 * 60_000, START + 8 * HOUR, HOUR, START + 6 * HOUR)
"""15:10 to 22:30, hours, seen at 20:30."""


def test_a_line_spans_the_range_asked_for_with_gaps_and_marks_what_the_range_or_the_present_cuts() -> None:
    style = Style(width=47, glyphs=True, span=ASKED)
    assert draw([TIMES[0], TIMES[2]], GAP_ROWS, style).lines == [
        "n by eventdate",
        "○ incomplete period",
        "4┤      ●",
        " │",
        " │○",
        " │",
        "2┤                       ●",
        " │",
        " │                             ○",
        " │",
        "0┤",
        " └──────┬───────────┬──────────┬───────────┬───",
        "        16:00       18:00      20:00      22:00",
        "        2018-10-08",
    ]


def test_points_of_periods_of_a_millisecond_are_joined() -> None:
    lines = draw([TIMES[0], TIMES[2]], [(START, 1.0), (START + 1, 2.0)], Style(width=47, glyphs=True)).lines
    assert "●" not in "".join(lines)


def test_a_period_that_begins_and_ends_with_the_range_is_complete() -> None:
    span = Span(GAP_ROWS[0][0], GAP_ROWS[-1][0] + HOUR, HOUR, START + 24 * HOUR)
    lines = draw([TIMES[0], TIMES[2]], GAP_ROWS, Style(width=47, glyphs=True, span=span)).lines
    assert "○ incomplete period" not in lines


def test_without_glyphs_a_line_is_of_letters_and_series_are_told_apart() -> None:
    rows = [(START + bucket * TEN, name, level + bucket) for bucket in range(3) for name, level in (("a", 0), ("b", 5))]
    assert draw(TIMES, rows, Style(width=40)).lines == [
        "n by eventdate, k",
        "A a  B b",
        "10+",
        "  |",
        "  |                            bbbbbbbbB",
        "  |          bbbbbbbbBbbbbbbbbb",
        " 5+bbbbbbbbbb",
        "  |",
        "  |          aaaaaaaaAaaaaaaaaaaaaaaaaaA",
        " 0+Aaaaaaaaaa",
        "  ++-----------------+-----------------+",
        "   14:30             14:40         14:50",
        "   2018-10-08",
    ]


def test_bars_over_time_say_how_many_periods_have_no_rows() -> None:
    assert draw([TIMES[0], TIMES[2]], GAP_ROWS, Style(span=ASKED)).lines == [
        "n by eventdate",
        "- incomplete period",
        "2018-10-08 15:00:00  3.0  ----------------------------------------",
        "2018-10-08 16:00:00  4.0  ######################################################",
        "(no rows in 2 periods)",
        "2018-10-08 19:00:00  2.0  ###########################",
        "2018-10-08 20:00:00  1.0  --------------",
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (1500, "1500"), (9999, "9999"), (-20_000, "-20k"), (1.5e6, "1.5M"), (2e9, "2G"), (3e12, "3T")],
)
def test_a_number_at_an_axis_has_a_letter_from_ten_thousand_on(number: float, text: str) -> None:
    assert short(number) == text


def test_values_that_cannot_be_drawn_are_counted() -> None:
    chart = draw(USERS, [("a", 1e306), ("b", float("nan")), ("c", 1), ("d", None)], Style(width=40))
    assert chart.notes == [WORDS["not numbers"]]


@pytest.mark.parametrize("columns", ["user:str", "n:int8", "eventdate:timestamp last:timestamp", ""])
def test_the_error_for_rows_that_cannot_be_charted_says_what_is_missing(columns: str) -> None:
    made = [TableColumn(name, type_) for name, _, type_ in (column.partition(":") for column in columns.split())]
    with pytest.raises(UsageError) as caught:
        draw(made, [], Style())
    there = ", ".join(f"{column.name} ({column.type})" for column in made) or "none"
    assert (caught.value.message, caught.value.hint) == (
        WORDS["no numbers"].format(there=there),
        HINTS["no numbers"],
    )


def test_more_rows_than_a_picture_can_show_are_refused_before_they_are_all_read() -> None:
    rows = iter([(str(number), number) for number in range(MAX_ROWS + 2)])
    with pytest.raises(UsageError) as caught:
        draw(USERS, rows, Style())
    assert caught.value.message == WORDS["too many rows"]
    assert len(list(rows)) == 1


NUMBERS = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.sampled_from([0, 0.0, 5e-324, 1e308, 1, 10**17])
)


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-(10**16), 10**16), st.integers(START, START + 10 * TEN)),
            st.sampled_from(["a", "漢字", "\x1b[2J", "x" * 50]),
            NUMBERS,
        ),
        max_size=30,
    ),
    st.integers(40, 120),
    st.booleans(),
)
def test_whatever_the_rows_hold_no_line_is_wider_than_the_terminal(
    rows: list[tuple[object, ...]], width: int, color: bool
) -> None:
    for columns in (TIMES, TIMES[1:]):
        values = rows if columns is TIMES else [row[1:] for row in rows]
        lines = bare(draw(columns, values, Style(width=width, color=color, glyphs=color)).lines)
        assert [line for line in lines if cell_len(line) > width] == []
        assert not any("\x1b" in line for line in lines)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20), st.booleans())
def test_a_larger_number_never_has_a_shorter_bar(numbers: list[int], color: bool) -> None:
    rows = [(str(index), number) for index, number in enumerate(numbers)]
    bars = [
        line[line.rindex("  ") + 2 :]
        for line in bare(draw(USERS, rows, Style(width=80, color=color, glyphs=color)).lines)[1:]
    ]
    blocks = " ▏▎▍▌▋▊▉█"
    lengths = [
        len(bar) * 8 if "#" in bar else sum(map(blocks.index, bar)) if number else 0
        for bar, number in zip(bars, numbers, strict=True)
    ]
    ordered = [length for _, length in sorted(zip(numbers, lengths, strict=True))]
    assert ordered == sorted(ordered)
    assert all((length > 0) == (number > 0) for number, length in zip(numbers, lengths, strict=True))
