"""`svcctl query` against the real service: what it prints, what it says, how it ends."""

import csv
import gzip
import io
import json
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import msgpack
import pytest
from support.pseudo_terminal import on_terminal
from support.shells import SAMPLE, SVCCTL, Shell
from support.waiting import eventually

DAY = ("--from", "2024-01-31", "--to", "1d")
FIRST = ("from sample limit 1", *DAY)

PRINTED = {
    "table": """\
eventdate (UTC)          name                               n               x  ok
-----------------------  ------------------  ----------------  --------------  -----
2024-01-31 10:00:00.000  plain                              1            0.5   true
2024-01-31 10:00:01.000  comma, "quote"      9007199254740993            null  false
2024-01-31 10:00:02.007  [brackets] 漢字 😀                -3  10000000000.0   null
2024-01-31 10:00:03.000  two\\nlines                      null            2.25  true
""",
    "csv": SAMPLE.replace("1e10", "10000000000.0"),
    "tsv": """\
eventdate	name	n	x	ok
2024-01-31 10:00:00.000	plain	1	0.5	true
2024-01-31 10:00:01.000	"comma, ""quote\"""	9007199254740993		false
2024-01-31 10:00:02.007	[brackets] 漢字 😀	-3	10000000000.0\t
2024-01-31 10:00:03.000	"two
lines"		2.25	true
""",
    "ndjson": """\
{"eventdate":1706695200000,"name":"plain","n":1,"x":0.5,"ok":true}
{"eventdate":1706695201000,"name":"comma, \\"quote\\"","n":9007199254740993,"x":null,"ok":false}
{"eventdate":1706695202007,"name":"[brackets] 漢字 😀","n":-3,"x":10000000000.0,"ok":null}
{"eventdate":1706695203000,"name":"two\\nlines","n":null,"x":2.25,"ok":true}
""",
}
RECORDS = [json.loads(line) for line in PRINTED["ndjson"].split("\n")[:-1]]


@pytest.mark.parametrize("name", PRINTED)
def test_rows_are_printed_whole_in_a_pipe(service: Shell, name: str) -> None:
    done = service("query", "from sample", *DAY, "-f", name)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", PRINTED[name])


def test_a_pipe_gets_csv_unless_told_otherwise(service: Shell) -> None:
    assert service("query", "from sample", *DAY).stdout == PRINTED["csv"]
    assert service("query", "from sample", *DAY, SVCCTL_FORMAT="ndjson").stdout == PRINTED["ndjson"]
    assert service("query", "from sample", *DAY, "-f", "csv", SVCCTL_FORMAT="ndjson").stdout == PRINTED["csv"]


def test_json_is_an_envelope_and_compact_has_columns_and_arrays(service: Shell) -> None:
    envelope = json.loads(service("query", "from sample", *DAY, "-f", "json").stdout)
    assert envelope.pop("timestamp") > 1.7e12
    assert len(envelope.pop("cid")) == 12
    assert envelope == {"success": True, "msg": "", "status": 0, "object": RECORDS}
    compact = json.loads(service("query", "from sample", *DAY, "-f", "json/compact").stdout)["object"]
    types = {"eventdate": "timestamp", "name": "str", "n": "int8", "x": "float8", "ok": "bool"}
    assert compact["m"] == {name: {"type": kind, "index": at} for at, (name, kind) in enumerate(types.items())}
    assert compact["metadata"] == [{"name": name, "type": kind} for name, kind in types.items()]
    assert compact["d"] == [list(record.values()) for record in RECORDS]
    lines = service("query", "from sample", *DAY, "-f", "json/simple/compact").stdout.split("\n")[:-1]
    first = {"m": compact["m"], "metadata": compact["metadata"]}
    assert [json.loads(line) for line in lines] == [first, *({"d": row} for row in compact["d"])]


def test_msgpack_and_xls_go_to_files(service: Shell, tmp_path: Path) -> None:
    packed, sheet = tmp_path / "rows.mp", tmp_path / "rows.xlsx"
    assert service("query", "from sample", *DAY, "-f", "msgpack", "-o", str(packed)).returncode == 0
    assert msgpack.unpackb(packed.read_bytes())["object"] == RECORDS
    assert service("query", "from sample", *DAY, "-f", "xls", "-o", str(sheet)).returncode == 0
    assert "xl/worksheets/sheet1.xml" in zipfile.ZipFile(sheet).namelist()


def test_text_comes_from_an_argument_a_file_or_standard_input(service: Shell, tmp_path: Path) -> None:
    text = 'from sample // a comment\nwhere name = "plain"\nselect n'
    (tmp_path / "query.q").write_text(text)
    for arguments, stdin in ((["-"], text), (["-F", str(tmp_path / "query.q")], ""), ([text], "")):
        done = service("query", *arguments, *DAY, stdin=stdin)
        assert (done.returncode, done.stdout) == (0, "n\n1\n")


def test_variables_are_quoted_literals(service: Shell) -> None:
    query = "from sample where name = {{name}} select n"
    done = service("query", query, *DAY, "--var", 'name=comma, "quote"')
    assert done.stdout == "n\n9007199254740993\n"
    done = service("query", query, *DAY, "--var", 'name=" or true or name = "')
    assert done.stdout == "n\n"


def test_limit_and_skip_and_the_note_that_there_may_be_more(service: Shell) -> None:
    done = service("query", "from sample select n", *DAY, "--skip", "1", "--limit", "2")
    assert (done.stdout, "limit of 2 rows" in done.stderr) == ("n\n9007199254740993\n-3\n", True)
    done = service("query", "from sample select n", *DAY, "--limit", "5")
    assert done.stderr == ""
    done = service("-q", "query", "from sample select n", *DAY, "--limit", "1")
    assert done.stderr == ""
    seen = on_terminal(service, "query", "from sample select n", *DAY, "--limit", "1", "-f", "csv")
    assert seen.screen == "svcctl: 2024-01-31 00:00 … 2024-02-01 00:00 UTC (1d)\nn\n1\n"


def test_dates_are_printed_in_the_format_and_zone_asked_for(service: Shell) -> None:
    options = ("--time-zone", "GMT+2", "--date-format", "iso")
    assert service("query", "from sample select eventdate limit 1", *DAY, *options).stdout == (
        "eventdate\n2024-01-31T12:00:00.000+0200\n"
    )
    assert service("query", "from sample select eventdate limit 1", *DAY, *options, "-f", "table").stdout == (
        "eventdate (GMT+2)\n------------------------\n2024-01-31T12:00:00+0200\n"
    )


def test_the_zone_moves_relative_dates_in_every_format(service: Shell) -> None:
    for name in ("csv", "table", "ndjson", "json", "json/compact", "json/simple/compact", "msgpack", "parquet"):
        shown = service("query", "from sample", "--from", "2ad", "--dry-run", "--time-zone", "GMT+14", "-f", name)
        request = json.loads(shown.stdout.split("\n\n")[1])
        if name == "csv":
            assert (request["from"], request["timeZone"]) == ("2ad", "GMT+14")
        else:
            assert (request["from"] + 14 * 3600) % 86400 == 0
            assert "timeZone" not in request


def test_an_end_of_a_zone_counts_from_its_start_where_numbers_are_sent(service: Shell) -> None:
    pair = ("--from", "31/01/2024 23:30:00", "--to", "endday", "--time-zone", "GMT+2", "-f", "ndjson")
    request = json.loads(service("query", "from sample", *pair, "--dry-run").stdout.split("\n\n")[1])
    assert (request["from"], request["to"]) == (1706736600, 1706738399)  # to 2024-01-31 23:59:59 in GMT+2


def test_a_range_has_milliseconds_as_svcctl_prints_them(service: Shell) -> None:
    def names(from_: str, to: str) -> str:
        done = service("query", "from sample select name", "--from", from_, "--to", to)
        return done.stdout + done.stderr

    assert names("2024-01-31 10:00:02.007", "2024-01-31 10:00:02.008") == "name\n[brackets] 漢字 😀\n"
    assert names("1706695202.007", "1706695202.008") == "name\n[brackets] 漢字 😀\n"
    assert names("2024-01-31 10:00:01.001", "2024-01-31 10:00:02.007") == "name\n"
    asked = ("query", "from sample", "--from", "2024-01-31 10:00:02.007", "--to", "1h", "--dest", "donothing")
    job = json.loads(service(*asked, "--dry-run").stdout.split("\n\n")[1])
    assert (job["from"], job["to"]) == (1706695202.007, "1h")


def test_a_dry_run_prints_the_request_and_no_secret(service: Shell) -> None:
    done = service("query", "from sample", "--from", "2h", "--limit", "3", "--dry-run")
    head, body = done.stdout.split("\n\n")
    assert f"\ncontent-length: {len(body.removesuffix(chr(10)))}\n" in head
    assert head.startswith("POST http://localhost/search/query\n")
    assert "x-svc-apikey: ****\n" in head
    assert head.endswith("x-svc-sign: ****")
    assert json.loads(body) == {
        "query": "from sample",
        "from": "2h",
        "to": "now",
        "mode": {"type": "csv"},
        "limit": 3,
        "keepAlive": {"type": "token"},
    }
    secret = json.loads((service.home / "data" / "credentials.json").read_text())["local"]
    assert secret["api_key"] not in done.stdout
    assert secret["api_secret"] not in done.stdout


def test_verbose_tells_what_was_sent_and_answered_and_no_secret(service: Shell) -> None:
    done = service("query", *FIRST, "-v")
    lines = done.stderr.split("\n")
    assert lines[0] == "svcctl: range 2024-01-31 00:00:00 to 2024-02-01 00:00:00 (UTC)"
    assert "svcctl: > POST http://localhost/search/query" in lines
    assert "svcctl: > x-svc-sign: ****" in lines
    assert any(line.startswith("svcctl: < 200 after ") for line in lines)
    assert "1 row, 63 bytes, " in lines[-2]
    secrets = json.loads((service.home / "data" / "credentials.json").read_text())["local"]
    assert not [secret for secret in secrets.values() if secret in done.stderr]


def test_output_appears_whole_and_is_not_overwritten(service: Shell, tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    assert service("query", "from sample", *DAY, "-o", str(target)).returncode == 0
    assert target.read_text(encoding="utf-8") == PRINTED["csv"]
    again = service("query", "from sample", *DAY, "-o", str(target))
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    assert target.read_text(encoding="utf-8") == PRINTED["csv"]
    folder = service("query", "from sample", *DAY, "-o", f"{tmp_path}/new/")
    assert (folder.returncode, f"{tmp_path}/new/events.csv" in folder.stderr) == (2, True)
    pattern = service("query", "from sample", *DAY, "-o", "n-{from:%F}.csv.gz")
    assert (pattern.returncode, "$(date +%F)" in pattern.stderr) == (2, True)
    packed = tmp_path / "rows.csv.gz"
    assert service("query", "from sample", *DAY, "-o", str(packed)).returncode == 0
    assert gzip.decompress(packed.read_bytes()).decode() == PRINTED["csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv", "rows.csv.gz"]


def test_an_empty_answer_is_a_success_unless_told_otherwise(service: Shell, tmp_path: Path) -> None:
    query = ("query", "from sample where false select n", *DAY)
    done = service(*query)
    assert (done.returncode, done.stdout, done.stderr) == (0, "n\n", "")
    for name in ("csv", "ndjson", "json", "table", "msgpack"):
        done = service(*query, "--fail-on-empty", "-f", name, "-o", str(tmp_path / "rows"))
        assert (done.returncode, done.stdout, "no rows" in done.stderr) == (8, "", True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [
        *(("-f", name) for name in ("csv", "tsv", "table", "vertical", "ndjson", "json", "msgpack", "chart")),
        ("--sort", "n"),
        ("--no-header",),
    ],
    ids=" ".join,
)
def test_without_rows_a_quiet_query_that_needs_some_prints_nothing(service: Shell, options: tuple[str, ...]) -> None:
    query = ("query", "from sample where false select n", *DAY, "--fail-on-empty", *options)
    quiet, loud = service("-q", *query), service(*query)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (8, "", "")
    assert (loud.returncode, loud.stdout, "no rows" in loud.stderr) == (8, "", True)


def test_without_rows_a_quiet_query_that_follows_prints_nothing(service: Shell) -> None:
    follow = ("query", "from sample where false select n", "--from", "now", "--follow", "--max-time", "0.3s")
    done = service("-q", *follow, "--fail-on-empty", "-f", "csv")
    assert (done.returncode, done.stdout, done.stderr) == (8, "", "")


@pytest.mark.parametrize("name", ["csv", "tsv", "table", "ndjson"])
def test_rows_are_the_same_where_they_are_needed(service: Shell, name: str) -> None:
    query = ("query", "from sample", *DAY, "-f", name)
    done = service(*query, "--fail-on-empty")
    assert (done.returncode, done.stdout) == (0, service(*query).stdout)


def test_a_quiet_query_that_needs_rows_still_reports_errors(service: Shell) -> None:
    done = service("-q", "query", "from sample where", *DAY, "--fail-on-empty")
    assert (done.returncode, done.stdout, "svcctl: error" in done.stderr) == (1, "", True)


def test_a_chart_without_rows_says_so_in_a_pipe_too(service: Shell) -> None:
    done = service("query", "from sample where false group by ok select count() as n", *DAY, "--chart")
    assert (done.returncode, done.stdout, "no rows" in done.stderr) == (0, "", True)


def test_periods_that_do_not_begin_with_the_days_of_the_zone_are_noted_in_pipes_too(service: Shell) -> None:
    query = ("query", "from sample group every 1d select count() as n", *DAY, "--time-zone", "GMT+2")
    done = service(*query)
    assert done.stdout == "eventdate,n\n2024-01-31 02:00:00.000,4\n"
    assert ["02:00 GMT+2" in done.stderr, '"yyyy-MM-dd", "GMT+2")' in done.stderr] == [True, True]
    assert service("-q", *query).stderr == ""


def test_a_person_whose_range_has_no_rows_is_told_when_the_events_of_the_table_are(service: Shell) -> None:
    seen = on_terminal(service, "query", "from sample select n", "--from", "2024-01-01", "--to", "1d", NO_COLOR="1")
    assert (seen.code, seen.screen.splitlines()[-1]) == (
        0,
        "svcctl: no rows from 2024-01-01 00:00:00 to 2024-01-02 00:00:00 (UTC); "
        "the events of sample are from 2024-01-31 10:00:00 to 2024-01-31 10:00:03",
    )
    seen = on_terminal(service, "query", "from sample where false", *DAY, NO_COLOR="1")
    assert seen.screen.splitlines()[-1].endswith(" to 2024-02-01 00:00:00 (UTC)")


@pytest.mark.parametrize(
    ("arguments", "code", "stderr"),
    [
        (
            ["from sample"],
            2,
            "svcctl: error: missing --from\nhint: add --from DATE, such as --from 1h; see 'svcctl query --help'\n",
        ),
        (
            ["--from", "1d"],
            2,
            "svcctl: error: no query given\nhint: give it as an argument, on standard input, or with -F FILE\n",
        ),
        (
            ["from sample", "--from", "01/02/2024 00:00:00", "--to", "01/01/2024 00:00:00"],
            2,
            "svcctl: error: the range ends before it starts: from 2024-02-01 00:00:00 to 2024-01-01 00:00:00 (UTC)\n"
            "hint: see how a pair resolves with 'svcctl range --from … --to …'\n",
        ),
        (
            ["from sample", "--from", "1d", "-f", "cvs"],
            2,
            "svcctl: error: unknown format 'cvs'\n"
            "hint: did you mean 'csv'? formats are: auto, table, vertical, chart, csv, tsv, ndjson, json, "
            "json/compact, json/simple, json/simple/compact, msgpack, xml, xls, parquet\n",
        ),
        (
            ["from sample", "--from", "1d", "-f", "ndjson", "--time-zone", "GMT+2", "--date-format", "iso"],
            2,
            "svcctl: error: --date-format does not apply to ndjson: its timestamps are epoch milliseconds\n"
            "hint: use it with csv, tsv, xml, xls, table or vertical; in jq: (.eventdate/1000|todate)\n",
        ),
        (
            ["from sample", "--from", "1d", "-o", "x.parquet", "--date-format", "iso"],
            2,
            "svcctl: error: --date-format does not apply to parquet: it holds dates as timestamps, not as text\n",
        ),
        (
            ["from sample where {{x}}", "--from", "1d", "--var", "x=1", "--var", "y=1"],
            2,
            "svcctl: error: the query has no {{y}}\n",
        ),
        (
            ["from sample", "--from", "1d", "--limit", "-1"],
            2,
            "svcctl: error: --limit -1 is less than 0\nhint: see 'svcctl query --help'\n",
        ),
        (
            ["from sample", "--from", "1d", "-F", "/none"],
            2,
            "svcctl: error: the query is given twice, as an argument and with --file\n"
            "hint: give it as an argument, on standard input, or with -F FILE\n",
        ),
        (
            ["-F", "/none", "--from", "1d"],
            2,
            "svcctl: error: the query cannot be read from /none: No such file or directory\n",
        ),
        (
            ["from sample", "--from", "1d", "--follow", "-f", "json"],
            2,
            "svcctl: error: --follow cannot be combined with format json, which needs the end of the result\n"
            "hint: formats for --follow are: table, vertical, csv, tsv, ndjson, json/simple, json/simple/compact\n",
        ),
    ],
)
def test_usage_errors_say_what_and_what_to_do(service: Shell, arguments: list[str], code: int, stderr: str) -> None:
    done = service("query", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", stderr)


@pytest.mark.parametrize(
    ("query", "stderr"),
    [
        (
            "from sampel",
            "svcctl: error: line 1, column 6: no table 'sampel' (did you mean 'sample'? TABLES) (CODE)\n"
            "  from sampel\n"
            "       ^\n",
        ),
        (
            "from sample\nwhere nam = 'x'",
            "svcctl: error: line 2, column 7: no column 'nam' (did you mean 'name'?) (CODE)\n"
            "  where nam = 'x'\n"
            "        ^\n",
        ),
        (
            "from sample where name = 5",
            "svcctl: error: line 1, column 24: cannot compare str with int4 "
            "(str(…) converts to a string, float8(…) to a number) (CODE)\n"
            "  from sample where name = 5\n"
            "                         ^\n",
        ),
    ],
)
def test_a_mistake_in_the_query_is_shown_in_its_place(service: Shell, query: str, stderr: str) -> None:
    done = service("query", query, *DAY)
    said, _, rest = done.stderr.partition("(code 1, cid ")
    said = re.sub(r"tables are [\w., ]+", "TABLES", said)  # other tests load tables of their own
    assert (done.returncode, done.stdout, said + "(CODE)" + rest.partition(")")[2]) == (1, "", stderr)


def test_standard_output_by_its_path_is_whatever_is_behind_it(service: Shell, tmp_path: Path) -> None:
    out = tmp_path / "o.out"
    for _ in range(2):
        with out.open("ab") as stdout:
            assert service.start("query", "from sample", *DAY, "-o", "/dev/stdout", stdout=stdout).wait() == 0
    assert out.read_text(encoding="utf-8") == PRINTED["csv"] * 2


def test_a_full_disk_and_a_closed_pipe_have_their_codes(service: Shell) -> None:
    with Path("/dev/full").open("wb") as full:
        process = service.start("query", "from sample", *DAY, stdout=full, stderr=subprocess.PIPE)
        assert process.communicate()[1] == b"svcctl: error: cannot write to standard output: No space left on device\n"
        assert process.returncode == 7
    process = service.start(
        "query", "from demo.ecommerce.data", "--from", "30d", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"eventdate,")
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_a_killed_query_leaves_at_most_the_part_file(service: Shell, tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    process = service.start("query", "from demo.ecommerce.data", "--from", "30d", "-o", str(target))
    part = tmp_path / "rows.csv.part"
    eventually(lambda: part.exists() and part.stat().st_size > 0)
    process.kill()
    process.wait()
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv.part"]
    done = service(
        "query", "from demo.ecommerce.data group by method select count() as n", "--from", "1d", "-o", str(target)
    )
    assert done.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.parametrize(
    ("variables", "code", "stderr"),
    [
        (
            {"SVCCTL_BASE_URL": "http://127.0.0.1:1", "SVCCTL_TOKEN": "x"},
            6,
            "svcctl: error: no answer from 127.0.0.1:1: Connection refused\n"
            "hint: find out why with 'svcctl profile check'\n",
        ),
        (
            {"SVCCTL_BASE_URL": "https://nowhere.invalid", "SVCCTL_TOKEN": "x"},
            6,
            "svcctl: error: no answer from nowhere.invalid: Name or service not known\n"
            "hint: find out why with 'svcctl profile check'\n",
        ),
        (
            {"SVCCTL_BASE_URL": "http://192.0.2.1", "SVCCTL_TOKEN": "x"},
            2,
            "svcctl: error: 'http://192.0.2.1' would send secrets unencrypted\n"
            "hint: use https; http is only for this machine\n",
        ),
        (
            {"SVCCTL_BASE_URL": "https://nowhere.invalid"},
            2,
            "svcctl: error: SVCCTL_BASE_URL is set but SVCCTL_API_KEY is not\n"
            "hint: set it too, or choose a profile with --profile\n",
        ),
    ],
)
def test_a_service_out_of_reach(shell: Shell, variables: dict[str, str], code: int, stderr: str) -> None:
    done = shell("query", "from sample", *DAY, "--retries", "0", **variables)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", stderr)


@pytest.fixture
def strangers(service: Shell, tmp_path: Path) -> Shell:
    """A home with its own profiles, whose requests go to the running service."""
    return Shell(tmp_path, {"SVCCTL_DATA": str(tmp_path / "none")})


def test_a_wrong_secret_is_refused_and_right_credentials_of_every_kind_are_not(
    service: Shell, strangers: Shell
) -> None:
    import jwt

    credentials = json.loads((service.home / "data" / "credentials.json").read_text())["local"]
    socket = str(service.home / "data" / "service.sock")
    token = jwt.encode(
        {"iss": credentials["api_key"], "exp": int(time.time()) + 60}, credentials["api_secret"], algorithm="HS256"
    )
    stale = jwt.encode({"iss": credentials["api_key"], "exp": 1}, credentials["api_secret"], algorithm="HS256")
    cases = [
        ("right", "signature", credentials["api_secret"], 0, ""),
        ("wrong", "signature", "not the secret", 3, "the API key or the signature is wrong"),
        ("bearer", "token", credentials["token"], 0, ""),
        ("stranger", "token", "abc", 3, "the token is not valid"),
        ("jwt", "jwt", token, 0, ""),
        ("stale", "jwt", stale, 3, "the token is not valid"),
    ]
    for name, method, secret, code, message in cases:
        field = "api_secret" if method == "signature" else "token"
        fields = ["base_url=http://localhost", f"socket={socket}", f"auth={method}", f"{field}=-"]
        if method == "signature":
            fields.append(f"api_key={credentials['api_key']}")
        assert strangers("profile", "set", name, *fields, stdin=secret).returncode == 0
        done = strangers("query", *FIRST, "-p", name)
        assert done.returncode == code, done.stderr
        assert done.stderr.split(" (")[0].strip() == (f"svcctl: error: {message}" if message else "")
        assert secret not in done.stderr


@pytest.mark.slow
def test_many_rows_stream_in_bounded_memory(service: Shell) -> None:
    # A small parent, because a child's peak counts the memory of the process it was forked from.
    measure = "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
    measure += "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
    process = subprocess.Popen(
        [sys.executable, "-c", measure, *SVCCTL, "query", "from demo.ecommerce.data", "--from", "11d", "-f", "ndjson"],
        env=service.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    rows = 0
    while block := process.stdout.read(1 << 20):
        rows += block.count(b"\n")
    code, peak = map(int, process.communicate()[1].split())
    assert code == 0
    assert peak < 64 * 1024
    counted = service.ndjson("query", "from demo.ecommerce.data group by protocol select count() as n", "--from", "11d")
    assert abs(rows - sum(int(str(row["n"])) for row in counted)) < 2000  # the two ranges end seconds apart
    assert rows > 400_000


def test_csv_of_the_demo_reads_as_csv(service: Shell) -> None:
    done = service("query", "from demo.ecommerce.data", "--from", "2h")
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert {len(row) for row in rows} == {13}
    assert [row[0] for row in rows[1:]] == sorted(row[0] for row in rows[1:])
