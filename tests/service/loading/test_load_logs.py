"""Loads of log lines: access logs, lines that begin with a time, keys and values."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.loads import at, changes, columns, first_skipped, load, rows, written

from svcctl.api.loads import SkipLimit
from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.loading.skips import Aside, Change


def test_lines_of_key_and_value_get_a_column_for_each_key(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = (
        'level=info ts=2026-01-02T10:00:00Z msg="it began" status=200 dur=1 code=007\n'
        'level=warn ts=2026-01-02T10:00:01Z msg="a \\"b\\" c=d\\n" status= user="" dur=2.5\n'
        "goroutine 1 [running]:\n"
        "level=error ts=2026-01-02T10:00:02Z msg=boom status=500 Level=x level=again\n"
    )
    result = load(engine, written(tmp_path, "app.log", text), "t", format="logfmt")
    assert columns(engine) == [
        *("level str", "msg str", "status int8", "dur float8", "code str", "user str", "Level_1 str")
    ]
    at = [datetime(2026, 1, 2, 10, 0, second) for second in range(3)]
    assert rows(engine, "t") == [
        (at[0], "info", "it began", 200, 1.0, "007", None, None),
        (at[1], "warn", 'a "b" c=d\n', None, 2.5, None, "", None),
        (at[2], "error", "boom", 500, None, None, None, "x"),
    ]
    assert (changes(result), result.changes[-1].place) == ({Change.REPEATED: 1}, "line 4")
    assert (result.skipped, first_skipped(result)) == (
        1,
        "line 3: 'goroutine 1 [running]:' is not an entry of the format logfmt",
    )


@pytest.mark.parametrize(
    "key", ["line", "number", "text", "Keys", "texts", "(text)", "(line)", "(keys)", "key", "lines"]
)
def test_a_key_may_have_any_name(engine: DuckDBEngine, tmp_path: Path, key: str) -> None:
    load(engine, written(tmp_path, "a.log", f"ts=2026-01-02T10:00:00Z level=info {key}=7\n"), "t", format="logfmt")
    assert rows(engine, "t") == [(datetime(2026, 1, 2, 10), "info", 7)]


def test_lines_that_begin_with_a_time_of_the_epoch_are_those_of_a_log(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "s.log", "1769853600.5 GET /x\n at 10\n1769853601 GET /y\n"), "s")
    load(engine, written(tmp_path, "ms.txt", "1769853600123: a b\n"), "ms")
    first = datetime(2026, 1, 31, 10)
    assert rows(engine, "s") == [
        (first.replace(microsecond=500_000), "GET /x\n at 10"),
        (first.replace(second=1), "GET /y"),
    ]
    assert rows(engine, "ms") == [(first.replace(microsecond=123_000), "a b")]
    with pytest.raises(UsageError, match=r"^the format of n.log is not clear: "):
        load(engine, written(tmp_path, "n.log", "17698536001 a\n"), "n")


def test_a_number_before_a_time_is_not_the_time(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(
        engine, written(tmp_path, "a.log", "1234567890 2026-01-31 10:00:00 a\n1234567891 2026-01-31 10:00:01 b\n"), "t"
    )
    assert rows(engine, "t")[0] == (datetime(2026, 1, 31, 10), "1234567890 a")
    with pytest.raises(UsageError):
        load(engine, written(tmp_path, "b.log", "1234567890|2026-01-31 10:00:00|a\n" * 2), "u")


def test_access_logs_common_and_combined(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = (
        '192.0.2.1 - ada [10/Oct/2025:13:55:36 -0700] "GET /a?b=1 HTTP/1.0" 200 2326 "https://example.com/" '
        '"curl/8, \\"x\\""\n'
        '2001:db8::1 - - [10/Oct/2025:20:55:37 +0000] "POST /a b HTTP/1.1" 404 -\n'
        "noise\n"
        '192.0.2.2 - - [10/Oct/2025:20:55:38 +0000] "-" 408 0 "-" "-"\n'
    )
    result = load(engine, written(tmp_path, "access.log", text), "web.access", format="access")
    assert (result.rows, result.skipped, first_skipped(result)) == (
        3,
        1,
        "line 3: 'noise' is not an entry of the format access",
    )
    assert columns(engine, "web.access") == [
        *("clientIp str", "user str", "method str", "uri str", "protocol str", "statusCode int4", "bytes int8"),
        *("referralUri str", "userAgent str"),
    ]
    at = datetime(2025, 10, 10, 20, 55, 36)
    assert rows(engine, "web.access") == [
        (at, "192.0.2.1", "ada", "GET", "/a?b=1", "HTTP/1.0", 200, 2326, "https://example.com/", 'curl/8, \\"x\\"'),
        (at.replace(second=37), "2001:db8::1", None, "POST", "/a b", "HTTP/1.1", 404, None, None, None),
        (at.replace(second=38), "192.0.2.2", None, None, None, None, 408, 0, None, None),
    ]


@pytest.mark.parametrize("rest", ["", ' "-" "curl/8"'])
def test_the_address_of_an_access_log_has_no_brackets_and_no_port(
    engine: DuckDBEngine, tmp_path: Path, rest: str
) -> None:
    hosts = dict(
        zip(
            ("[::1]:54321", "[2001:db8::1]", "::ffff:192.0.2.1", "192.0.2.1:8080", "web-1.example:80", "fe80::1%eth0"),
            ("::1", "2001:db8::1", "::ffff:192.0.2.1", "192.0.2.1", "web-1.example:80", "fe80::1%eth0"),
            strict=True,
        ),
        **{"unix:": "unix:", "-": "-"},
    )
    request = '- - [10/Oct/2025:20:55:37 +0000] "GET / HTTP/1.1" 200 -'
    text = "".join(f"{host} {request}{rest}\n" for host in hosts)
    assert load(engine, written(tmp_path, "access.log", text), "web.access").rows == len(hosts)
    assert [row[1] for row in rows(engine, "web.access")] == list(hosts.values())


def test_the_fields_after_those_of_an_access_log_are_kept(engine: DuckDBEngine, tmp_path: Path) -> None:
    line = '192.0.2.1 - - [10/Oct/2025:20:55:37 +0000] "GET / HTTP/1.1" 200 9'
    ends = {' "-" "curl/8"': None, ' "-" "curl/8" "10.1.1.1" rt=0.003': '"10.1.1.1" rt=0.003', " 0.25": "0.25"}
    lines = "".join(f"{line}{end}\n" for end in ends)
    for text in (lines, f"{line}\n" * 20_000 + lines):  # later in the file, too
        load(engine, written(tmp_path, "access.log", text), "web", strict=True, replace=True)
        assert [row[-1] for row in rows(engine, "web")[-3:]] == list(ends.values())


def test_words_before_the_time_of_an_access_log_have_columns_or_the_line_is_no_access_log(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    end = '[10/Oct/2025:20:55:37 +0000] "GET / HTTP/1.1" 200 9\n'
    late = f"192.0.2.1 - - {end}" * 20_000 + f"192.0.2.1 shop.example ada {end}"  # in a later line, too
    for text in (f"192.0.2.1 - ada b {end}192.0.2.1 shop.example ada {end}", late):
        load(engine, written(tmp_path, "a.log", text), "web", strict=True, replace=True)
        assert columns(engine, "web")[:3] == ["clientIp str", "ident str", "user str"]
        assert rows(engine, "web")[-1][1:4] == ("192.0.2.1", "shop.example", "ada")
    for words in (
        "shop.example 192.0.2.1 - -",
        "192.0.2.1, 192.0.2.2 - -",
        "192.0.2.1, 192.0.2.2 -",
        "192.0.2.1 - - 0.3",
    ):
        load(engine, written(tmp_path, "b.log", f"{words} {end}"), "log", replace=True)
        assert rows(engine, "log")[0][1:] == (f'{words} "GET / HTTP/1.1" 200 9',)


@pytest.mark.parametrize(
    "time",
    [
        *("10/Oct/2025:20:55:37.250 +0000", "10/Oct/2025:22:55:37.250 +0200", "10/Oct/2025:20:55:37.250"),
        *("10/Oct/2025 20:55:37.250", "2025-10-10T20:55:37.250Z", "2025-10-10 20:55:37,250", "1760129737.250"),
    ],
)
def test_the_time_of_an_access_log_may_be_written_in_other_ways(
    engine: DuckDBEngine, tmp_path: Path, time: str
) -> None:
    text = f'192.0.2.1 - - [{time}] "GET / HTTP/1.1" 200 -\n'
    result = load(engine, written(tmp_path, "access.log", text), "web", strict=True)
    assert result.oldest == at("2025-10-10T20:55:37") + 250
    has_zone = "+" in time or time.endswith("Z") or time.startswith("17")
    assert [one.what for one in result.changes] == ([] if has_zone else [Change.ZONE])


def test_an_access_log_of_several_servers_keeps_the_server(engine: DuckDBEngine, tmp_path: Path) -> None:
    line = 'shop.example:443 192.0.2.1 - - [10/Oct/2025:20:55:37 +0000] "GET / HTTP/1.1" 200 9 "-" "curl/8"\n'
    late = line.partition(" ")[2] * 20_000 + line  # the server of a later line, too
    for text in (line, late):
        assert load(engine, written(tmp_path, "other.log", text), "web", replace=True).skipped == 0
    row = rows(engine, "web")[-1]
    at = datetime(2025, 10, 10, 20, 55, 37)
    assert row[:9] == (at, "shop.example:443", "192.0.2.1", None, "GET", "/", "HTTP/1.1", 200, 9)


def test_log_lines_that_begin_with_a_time(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = "no time\n2026-01-02 10:11:12 status installed foo:amd64 1.2\n2026-01-02T10:11:13,250+01:00 ünïcode\r\n"
    result = load(engine, written(tmp_path, "dpkg.log.gz", text), "dpkg", format="log")
    assert (result.rows, result.skipped, first_skipped(result)) == (
        2,
        1,
        "line 1: 'no time' is not an entry of the format log",
    )
    assert rows(engine, "dpkg") == [
        (datetime(2026, 1, 2, 9, 11, 13, 250_000), "ünïcode"),
        (datetime(2026, 1, 2, 10, 11, 12), "status installed foo:amd64 1.2"),
    ]


def test_the_error_log_of_a_web_server_is_a_log(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = (
        '2026/01/31 10:00:00 [error] 1234#0: *5 open() "/x" failed, client: 10.0.0.1, server: _\n'
        "2026/01/31 10:00:01 [emerg] 1234#0: bind() failed\n  and why\n"
    )
    assert load(engine, written(tmp_path, "error.log", text), "web.errors").skipped == 0
    assert rows(engine, "web.errors") == [
        (datetime(2026, 1, 31, 10), '[error] 1234#0: *5 open() "/x" failed, client: 10.0.0.1, server: _'),
        (datetime(2026, 1, 31, 10, 0, 1), "[emerg] 1234#0: bind() failed\n  and why"),
    ]


def test_the_time_of_a_log_line_may_be_in_brackets(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = (
        "[2026-01-31 10:00:00] live.ERROR: it failed\n[stacktrace]\n#0 main.php(1)\n"
        "[2026-01-31T10:00:00.250000+00:00] live.INFO: done []\n[2026-01-31 11:00:01 +0100] [7] [INFO] Booting\n"
    )
    assert load(engine, written(tmp_path, "live.log", text), "live").skipped == 0
    assert rows(engine, "live") == [
        (datetime(2026, 1, 31, 10), "live.ERROR: it failed\n[stacktrace]\n#0 main.php(1)"),
        (datetime(2026, 1, 31, 10, 0, 0, 250_000), "live.INFO: done []"),
        (datetime(2026, 1, 31, 10, 0, 1), "[7] [INFO] Booting"),
    ]


def test_the_time_of_a_log_line_may_name_a_zone(engine: DuckDBEngine, tmp_path: Path) -> None:
    zones = {"UTC": 6, "GMT": 6, "Z": 6, "America/New_York": 11, "-03": 9, "+0100": 5}
    text = "".join(f"2026-11-20 06:00:01.5 {zone} [1] LOG: {zone}\n" for zone in zones)
    result = load(engine, written(tmp_path, "z.log", text), "z")
    assert (result.skipped, result.changes) == (0, ())
    found = [(datetime(2026, 11, 20, hour, 0, 1, 500_000), f"[1] LOG: {zone}") for zone, hour in zones.items()]
    assert rows(engine, "z") == sorted(found, key=lambda row: row[0])


@pytest.mark.parametrize("time", ["20-Nov-2026 06:00:01.5", "20.11.2026 06:00:01,5", "Fri Nov 20 06:00:01.5 2026"])
def test_a_time_of_any_form_may_name_a_zone(engine: DuckDBEngine, tmp_path: Path, time: str) -> None:
    zones = {"UTC": 6, "GMT": 6, "America/New_York": 11, "-0300": 9, "+01:00": 5}
    text = "".join(f"[{time} {zone}] up\n" for zone in zones)
    result = load(engine, written(tmp_path, "z.log", text), "z")
    assert (result.skipped, result.changes) == (0, ())
    assert sorted(row[0].hour for row in rows(engine, "z")) == sorted(zones.values())  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=r"CET. end with"):
        load(engine, written(tmp_path, "cet.log", f"[{time} CET] up\n"), "z")


def test_the_time_of_a_log_line_may_be_that_of_c_and_brackets_may_hold_more(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    text = (
        "[Sat Jan 31 10:00:00 2026] [notice] Apache configured\n  and running\n"
        "[Sat Jan 31 10:00:00.123456 2026] [core:error] [pid 7] no file\nSun Feb  1 10:00:00 2026 plain\n"
        "[2026-02-02 10:00:00 ERROR] foo\n"
    )
    result = load(engine, written(tmp_path, "error.log", text), "errors", time_zone="Europe/Berlin")
    assert (result.rows, result.skipped) == (4, 0)
    assert rows(engine, "errors") == [
        (datetime(2026, 1, 31, 9), "[notice] Apache configured\n  and running"),
        (datetime(2026, 1, 31, 9, 0, 0, 123_000), "[core:error] [pid 7] no file"),
        (datetime(2026, 2, 1, 9), "plain"),
        (datetime(2026, 2, 2, 9), "[ERROR] foo"),
    ]


@pytest.mark.parametrize("format", [None, "log"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("update-alternatives {}: run with --all", "update-alternatives run with --all"),
        ("[pid 12] {} up", "[pid 12] up"),
        ("INFO {},250 up, 2", "INFO up, 2"),
        ("INFO:root:{} up", "INFO:root:up"),
        ("[INFO] [{}] up", "[INFO] up"),
        ("[I {} main] up", "[I main] up"),
        ("[I {}] up", "[I] up"),
        ('time="{}" INFO up', "INFO up"),
        ("level=info ts={} n=1", "level=info n=1"),
        ("(12) ({}) up", "(12) up"),
        ("7:M {named} * up", "7:M * up"),
        ("{named} up", "up"),
        ("{}:DEBUG:foo up", "DEBUG:foo up"),
        ("{}|INFO|up", "INFO|up"),
        ("{}, Info   up", "Info   up"),
        ("{}; Critical; up", "Critical; up"),
        ("[{}][acpid] up", "[acpid] up"),
        ("[{},  0] up", "[0] up"),
        ("{named}(298)->up", "(298)->up"),
        ("\x1b[2m{}\x1b[0m up", "\x1b[2m\x1b[0m up"),
        ("<13>{} up", "<13>up"),
        ("\x1b[1;32mINFO\x1b[0m {} up", "\x1b[1;32mINFO\x1b[0m up"),
        ('192.0.2.1 - ada [{access} +0000] "GET /" 1.5', '192.0.2.1 - ada "GET /" 1.5'),
    ],
)
def test_the_time_of_a_log_line_may_have_words_before_it(
    engine: DuckDBEngine, tmp_path: Path, line: str, message: str, format: str | None
) -> None:
    lines = [
        line.format(at, named=f"{at:%d %b %Y %H:%M:%S.250}", access=f"{at:%d/%b/%Y:%X}")
        for at in (datetime(2026, 1, 31, 10), datetime(2026, 1, 31, 10, 0, 1))
    ]
    more = "\nwhich is no entry of 2026-01-30 10:00:00 and\n  2026-01-30 10:00:00 neither"
    result = load(
        engine, written(tmp_path, "app.log", f"{lines[0]}{more}\n{lines[1]}"), "app", format=format, strict=True
    )
    assert (result.oldest or 0) // 1000 == at("2026-01-31T10:00:00") // 1000
    assert [row[1] for row in rows(engine, "app")] == [f"{message}{more}", message]


def test_the_lines_of_a_log_may_begin_with_blanks(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = "    INFO 2026-01-31 10:00:00 up\n  and away\n CRITICAL 2026-01-31 10:00:01 down\n"
    load(engine, written(tmp_path, "a.log", text), "t")
    assert [row[1] for row in rows(engine, "t")] == ["INFO up\n  and away", "CRITICAL down"]


@pytest.mark.parametrize("options", [{}, {"time_format": "%Y-%m-%d  %H:%M:%S"}])
def test_a_log_may_have_two_blanks_between_date_and_time_and_no_text_behind_it(
    engine: DuckDBEngine, tmp_path: Path, options: dict[str, Any]
) -> None:
    text = "\nStart-Date: 2026-01-31  10:00:00\nInstall: a:amd64 (1, 2)\nEnd-Date: 2026-01-31  10:00:01\n"
    load(engine, written(tmp_path, "history.log", text), "apt", format="log", **options)
    assert rows(engine, "apt") == [
        (datetime(2026, 1, 31, 10), "Start-Date: Install: a:amd64 (1, 2)"),
        (datetime(2026, 1, 31, 10, 0, 1), "End-Date: "),
    ]


def test_a_comment_that_names_a_time_begins_no_log_unless_it_is_one(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "slow", "# Time: 2026-01-31 10:00:00\n# Time: 2026-01-31 10:00:01\nSELECT 1;\n")
    with pytest.raises(UsageError, match=r"^the format of slow is not clear: "):
        load(engine, path, "t")
    load(engine, path, "t", format="log")
    assert [row[1] for row in rows(engine, "t")] == ["# Time: ", "# Time: SELECT 1;"]


@pytest.mark.parametrize("format", [None, "log"])
def test_the_time_of_a_log_line_may_begin_with_the_day(
    engine: DuckDBEngine, tmp_path: Path, format: str | None
) -> None:
    text = "05/11/2026 10:00 one\n  more of one\n[21/11/2026 10:00:01.5]  2, two\n"
    options = {"format": format, "time_zone": "Europe/Berlin", "time_format": "%d/%m"}
    result = load(engine, written(tmp_path, "app.log", text), "app", strict=True, **options)
    assert rows(engine, "app") == [
        (datetime(2026, 11, 5, 9), "one\n  more of one"),
        (datetime(2026, 11, 21, 9, 0, 1, 500_000), "2, two"),
    ]
    assert changes(result) == {}


@pytest.mark.parametrize(
    ("time_format", "line"),
    [
        ("%d.%m.%Y %H:%M:%S", "31.01.2026 10:00:00"),
        ("%d-%b-%Y %I:%M %p", "[31-Jan-2026 10:00 AM]"),
        ("%Y%m%d %H%M%S", "20260131 100000"),
        ("%Y/%m/%d %H:%M:%S.%g %z", "2026/01/31 11:00:00.000 +0100"),
        ("%Y%m%dT%H%M%S%z", "20260131T100000Z"),
    ],
)
def test_a_format_tells_the_time_at_the_beginning_of_log_lines(
    engine: DuckDBEngine, tmp_path: Path, time_format: str, line: str
) -> None:
    text = f"{line} one\n  more of one\n{line} 2, two\n"
    result = load(engine, written(tmp_path, "app.log", text), "app", time_format=time_format, strict=True)
    assert result.rows == 2
    assert rows(engine, "app") == [
        (datetime(2026, 1, 31, 10), "one\n  more of one"),
        (datetime(2026, 1, 31, 10), "2, two"),
    ]
    with pytest.raises(UsageError, match="line 1: '2026 x'"):
        load(engine, written(tmp_path, "b.log", "2026 x\n"), "app", time_format=time_format, format="log")


@pytest.mark.parametrize(
    ("line", "ms", "message"),
    [
        ("[    5.25] usb 1-0: new", 5250, "usb 1-0: new"),
        ("7 usb 1-0: new", 7000, "usb 1-0: new"),
        ("type=LOGIN msg=audit(1763719200.123:42): pid=1", 1763719200123, "type=LOGIN (42): pid=1"),
        ("at 1763719200 pid 1", 1763719200000, "at pid 1"),
    ],
)
def test_a_unit_tells_numbers_at_the_beginning_and_long_ones_after_words(
    engine: DuckDBEngine, tmp_path: Path, line: str, ms: int, message: str
) -> None:
    result = load(engine, written(tmp_path, "a.log", f"{line}\n" * 2), "t", time_format="epoch", format="log")
    assert (result.oldest, rows(engine, "t")[1][1]) == (ms, message)
    for text in ("pid 1\n", "[0.125s] up\n"):
        with pytest.raises(UsageError, match="is not an entry"):
            load(engine, written(tmp_path, "b.log", text), "t", time_format="epoch", format="log")


@pytest.mark.parametrize("line", ["one Jan 31 10:00:00 x", "Sat Jan 31 10:00:00 x"])
def test_a_time_that_begins_with_a_word_has_all_of_the_word(engine: DuckDBEngine, tmp_path: Path, line: str) -> None:
    path = written(tmp_path, "a.log", f"{line}\n")
    assert load(engine, path, "t", time_format="%b %d %H:%M:%S", format="log").skipped == 0
    assert rows(engine, "t")[0][1] == f"{line[:3]} x"


@pytest.mark.parametrize(
    ("text", "ms"),
    [("10:00:00,672:DEBUG", 672), ("10:00:00:250 INFO", 250), ("10:00:00+00 x", 0), ("10:00:00.1234|x", 123)],
)
def test_what_touches_the_time_of_a_log_line_may_belong_to_it(
    engine: DuckDBEngine, tmp_path: Path, text: str, ms: int
) -> None:
    result = load(engine, written(tmp_path, "app.log", f"2026-01-31 {text}\n"), "app", strict=True)
    assert result.oldest == at("2026-01-31T10:00:00") + ms


@pytest.mark.parametrize(
    ("time", "hour"),
    [
        ("2026-01-31 01:30:00 PM", 13),
        ("2026/1/31 1:30:00 pm", 13),
        ("31-Jan-2026 12:30:00.250 AM", 0),
        ("31/Jan/2026 01:30:00 PM +0200", 11),
        ("2026-01-31 13:30:00 GMT+08:00", 5),
        ("2026-01-31 13:30:00.250 UTC+0200", 11),
        ("31-Jan-2026 13:30:00 GMT-02:00", 15),
        ("2026-01-31 1:30:00", 1),
        ("31 Jan 2026 1:30:00", 1),
    ],
)
def test_the_hour_and_the_offset_of_a_log_line_may_be_written_in_other_ways(
    engine: DuckDBEngine, tmp_path: Path, time: str, hour: int
) -> None:
    for line in (f"{time} up\n", f"[INFO] [{time}] up\n"):
        load(engine, written(tmp_path, "app.log", line * 2), "t", strict=True, replace=True)
        date, message = rows(engine, "t")[0]
        assert (str(date)[:19], str(message)[-2:]) == (f"2026-01-31 {hour:02}:30:00", "up")


def test_a_number_after_a_time_is_no_offset_unless_it_may_be_one(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "app.log", "2026-01-31 10:00:00 -1234 bytes\n"), "t")
    assert rows(engine, "t") == [(datetime(2026, 1, 31, 10), "-1234 bytes")]


@pytest.mark.parametrize("end", ["Z+01:00", "\N{NARROW NO-BREAK SPACE}PM", " p.m."])
def test_a_time_of_a_log_line_is_read_as_a_whole_or_not_at_all(engine: DuckDBEngine, tmp_path: Path, end: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        load(engine, written(tmp_path, "app.log", f"2026-01-31 10:00:00{end} up\n"), "t")


@pytest.mark.parametrize("first", ["2026-01-31 10:00:00", "31-Jan-2026 10:00:00", "31/Jan/2026:10:00:00 +0000"])
def test_a_line_that_begins_with_a_time_is_an_entry_or_is_skipped(
    engine: DuckDBEngine, tmp_path: Path, first: str
) -> None:
    times = ["2026-2-1 9:00:00", "1-Feb-2026 9:00:00", "1 Feb 2026 09:00:00", "31-Mai-2026 09:00:00", f"\0\0{first}"]
    text = f"{first} up\n" * 2000 + "".join(f"{time} up\n" for time in times)
    result = load(engine, written(tmp_path, "app.log", text), "t")
    assert (result.rows, result.skipped) == (2003, 2)
    assert [aside.what for aside in result.asides] == []


@pytest.mark.parametrize("line", ["a,2026-01-31 10:00:00,3", "INFO|2026-01-31 10:00:00|up"])
def test_a_time_between_the_separators_of_csv_begins_no_log_unless_it_is_one(
    engine: DuckDBEngine, tmp_path: Path, line: str
) -> None:
    path = written(tmp_path, "app", f"{line}\n")
    with pytest.raises(UsageError):
        load(engine, path, "t")
    assert load(engine, path, "t", format="log").rows == 1


def test_a_format_without_a_year_reads_the_last_one_in_which_no_event_is_later_than_the_file(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    path = written(tmp_path, "app.log", "I1130 10:00:00.250 a\nI0131 10:00:00.250 b\n")
    os.utime(path, (at("2026-02-01T00:00:00") / 1000,) * 2)
    load(engine, path, "t", time_format="%m%d %H:%M:%S.%f")
    assert rows(engine, "t") == [
        (datetime(2025, 11, 30, 10, 0, 0, 250_000), "I a"),
        (datetime(2026, 1, 31, 10, 0, 0, 250_000), "I b"),
    ]


SYSLOG = {
    "Jan 1 10:00:00 web sshd[7]: up": ("web", "sshd", "7", "up"),
    "Jan  1 10:00:00.250 2001:db8::1 sshd: up": ("2001:db8::1", "sshd", None, "up"),
    "Jan  1 10:00:00 sshd[7]: up": (None, "sshd", "7", "up"),
    "<34>Jan  1 2026 10:00:00 web sshd: up": ("web", "sshd", None, "up"),
    "<34>2026-01-01T10:00:00Z web sshd[7]: up": ("web", "sshd", "7", "up"),
    "Jan  1 10:00:00 --- last message repeated 2 times ---": (
        None,
        None,
        None,
        "--- last message repeated 2 times ---",
    ),
    "<34>1 2026-01-01T10:00:00Z web sshd 7 ID47 up and away": ("web", "sshd", "7", "up and away"),
    '<34>1 2026-01-01T10:00:00Z web sshd 7 ID47 [a b="c"] up': ("web", "sshd", "7", "up"),
    "Jan  1 10:00:00 fw CEF:0|A B|C|1|100|n|5|src=192.0.2.1": ("fw", None, None, "CEF:0|A B|C|1|100|n|5|src=192.0.2.1"),
    "<34>1 2026-01-01T10:00:00Z fw CEF:0|A B|C|1|": ("fw", None, None, "CEF:0|A B|C|1|"),
    "Jan  1 10:00:00 LEEF:1.0|A|C|1|e|a=b\tc=d": (None, None, None, "LEEF:1.0|A|C|1|e|a=b\tc=d"),
}


@pytest.mark.parametrize("line", SYSLOG)
def test_lines_of_syslog_may_lack_parts(engine: DuckDBEngine, tmp_path: Path, line: str) -> None:
    path = written(tmp_path, "messages", f"{line}\n")
    os.utime(path, (at("2026-02-01T00:00:00") / 1000,) * 2)
    result = load(engine, path, "t", strict=True)
    assert (result.oldest or 0) // 1000 == at("2026-01-01T10:00:00") // 1000
    with engine.statement("SELECT host, app, pid, message FROM events.t") as stream:
        assert [tuple(row.values()) for batch in stream for row in batch.to_pylist()] == [SYSLOG[line]]


@pytest.mark.parametrize(
    ("time", "hour"),
    [
        ("Jan  1 10:00:00 2021", 10),
        ("Jan  1 10:00:00.250 2021", 10),
        ("Jan  1 2021 10:00:00 UTC", 10),
        ("Jan  1 10:00:00 GMT 2021", 10),
        ("Jan  1 10:00:00 CET 2021", 9),
        ("Jan  1 2021 10:00:00", 9),
    ],
)
def test_a_year_and_a_zone_may_follow_the_time_of_syslog(
    engine: DuckDBEngine, tmp_path: Path, time: str, hour: int
) -> None:
    path = written(tmp_path, "messages", f"{time} web sshd[7]: up\n<189>{time}: %SYS-5: up\n")
    zone = "Europe/Berlin" if hour == 9 else None
    result = load(engine, path, "t", strict=True, time_zone=zone)
    assert {str(row[0])[:19] for row in rows(engine, "t")} == {f"2021-01-01 {hour:02}:00:00"}
    assert [row[1:4] for row in rows(engine, "t")] == [("web", "sshd", "7"), (None, "%SYS-5", None)]
    is_assumed = zone is None and "UTC" not in time and "GMT" not in time
    assert [one.what for one in result.changes] == [Change.ZONE] * is_assumed
    if "CET" in time:
        with pytest.raises(UsageError, match="end with an abbreviation of a zone"):
            load(engine, path, "u")


@pytest.mark.parametrize("line", ["Jan 31 10:00:00 web sshd[7]: up", "2026-01-31T10:00:00+0100 web sshd[7]: up"])
def test_the_lines_that_a_journal_writes_between_events_are_not_skipped(
    engine: DuckDBEngine, tmp_path: Path, line: str
) -> None:
    header = "-- Logs begin at Mon 2026-01-01 00:00:00 CET, end at Wed 2026-01-31 10:00:02 CET. --\n"
    text = f"{header}{line}\n-- Boot 3f2a --\n{line}\n"
    result = load(engine, written(tmp_path, "journal.log", text), "t", strict=True)
    assert (result.rows, [(aside.what, aside.count) for aside in result.asides]) == (2, [(Aside.COMMENT, 2)])
    assert load(engine, written(tmp_path, "journal.log", "-- No entries --\n"), "t").empty == ("journal.log",)


STRAYS = {
    "an access log": '10.0.0.1 - - [31/Jan/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5\n',
    "ndjson": '{"at": "2026-01-31T10:00:00Z", "text": "x"}\n',
    "times without a day": "10:00:00 it worked\n",
    "a time after many words": "[WARN] [main] [of] [many] [words] 2026-01-31 10:00:00 x\n",
}


@pytest.mark.parametrize("stray", STRAYS)
def test_later_lines_of_another_kind_are_refused_unless_the_format_is_named(
    engine: DuckDBEngine, tmp_path: Path, stray: str
) -> None:
    entries = "".join(f"2026-01-31 10:{n // 60:02}:{n % 60:02} started {n}\n" for n in range(1500))
    few, many = (written(tmp_path, f"{count}.log", entries + STRAYS[stray] * count) for count in (100, 400))
    with pytest.raises(UsageError, match=r"400 of 1,900 lines of 400.log are .*; the first: line 1501: '") as caught:
        load(engine, many, "t")
    assert (caught.value.reason, caught.value.data, engine.tables()) == ("stray-lines", {"format": "log"}, {})
    assert load(engine, few, "t").rows == 1500
    assert load(engine, many, "t", format="log").rows == 1500
    assert load(engine, many, "t", max_skipped=SkipLimit.parse("25%")).rows == 1500


def test_the_first_stray_is_named_with_its_line(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = "2026-01-31 10:00:00 a\n\none\ntwo\n2026-01-31 10:00:01 b\n"
    with pytest.raises(UsageError, match=r"2 of 1,50\d lines of a.log are .*; the first: line 1503: 'one'$"):
        load(engine, written(tmp_path, "a.log", 1500 * "2026-01-31 10:00:00 a\n" + text), "t", strict=True)


PARTS = {
    "a stack trace": "Error: no\n  at main (x.js:1)\n  at run (x.js:2)\nCaused by: y\n... 3 more\n",
    "a traceback": 'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: no\n',
    "a statement": "\tselect a\n\tfrom b\nwhere c\n",
    "JSON over several lines": '{\n  "a": 1\n}\n',
    "text after a blank line": "\n  it failed\nfor this reason\n",
}


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_entries_are_no_strays(engine: DuckDBEngine, tmp_path: Path, part: str) -> None:
    text = "".join(f"2026-01-31 10:{n // 60:02}:{n % 60:02} {n}\n{PARTS[part] * (n % 2)}" for n in range(2000))
    assert load(engine, written(tmp_path, "a.log", text), "t").rows == 2000
