"""The messages of `svcctl query` on stderr, each as a whole once; the other tests of this folder state the effects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.shells import DAY, Shell

RANGE = "from 2024-01-31 00:00:00 to 2024-02-01 00:00:00 (UTC)"
COUNTED = "select count() as n"


S3 = [word for field in ("bucket", "region") for word in ("--dest-param", f"aws.{field}=x")]


ROWS = "from sample select n"
WORDS: dict[str, tuple[tuple[str, ...], str]] = {
    "a limit": ((ROWS, *DAY, "--limit", "2"), "svcctl: stopped at the limit of 2 rows: there may be more\n"),
    "a limit before --sort": (
        (f"{ROWS} limit 1", *DAY, "--sort", "n:desc"),
        "svcctl: the query's limit cuts rows before --sort; --top N cuts them after it\n",
    ),
    "no rows": (("from sample where false", *DAY, "--fail-on-empty"), f"svcctl: error: no rows {RANGE}\n"),
    "no rows in a chart": (
        (f"from sample where false group by ok {COUNTED}", *DAY, "--chart"),
        f"svcctl: no rows {RANGE}\n",
    ),
    "a chart without numbers": (
        ("from sample select name", *DAY, "--chart"),
        "svcctl: error: a chart needs a number and another column that names the rows; the columns are name (str)\n"
        "hint: group by a column or a period, and select count() as n\n",
    ),
    "periods in UTC": (
        (f"from sample group every 1d {COUNTED}", *DAY, "--time-zone", "GMT+2"),
        "svcctl: 'group every' counts in UTC: a period begins at 02:00 GMT+2; for days there: "
        'group by formatdate(eventdate, "yyyy-MM-dd", "GMT+2") as day\n',
    ),
    "a folder": (
        (ROWS, *DAY, "-o", "<folder>/new/"),
        "svcctl: error: <folder>/new/ ends with /, so it is not a file\n"
        "hint: name a file in it, as in -o <folder>/new/events.csv\n",
    ),
    "a pattern": (
        (ROWS, *DAY, "-o", "n-{from:%F}.csv.gz"),
        "svcctl: error: 'n-{from:%F}.csv.gz' contains {from:%F}, but no date is filled in here\n"
        "hint: patterns are for 'svcctl export'; the shell fills in a date with $(date +%F), "
        "in a crontab with $(date +\\%F)\n",
    ),
    "another ending": (
        (ROWS, *DAY, "-o", "<folder>/c.json", "-f", "csv"),
        "svcctl: <folder>/c.json contains csv, not json\n",
    ),
    "an ending like another": (
        (ROWS, *DAY, "-o", "<folder>/c.xls", "-f", "xls"),
        "svcctl: <folder>/c.xls contains xlsx, not xls\n",
    ),
    "an unknown ending": (
        (ROWS, *DAY, "-o", "<folder>/c.jsn"),
        "svcctl: <folder>/c.jsn contains csv, because its ending does not name a format\n",
    ),
    "an empty name": (
        (ROWS, *DAY, "-f", "table", "--columns", "a,"),
        "svcctl: error: --columns 'a,' has an empty name\nhint: separate names by commas: --columns user,n\n",
    ),
    "an unknown column": (
        ("from sample", *DAY, "-f", "table", "--sort", "ok,nmae"),
        "svcctl: error: no column 'nmae'\nhint: did you mean 'name'? columns are: eventdate, name, n, x, ok\n",
    ),
    "a format of the service": (
        (ROWS, *DAY, "-f", "msgpack", "--columns", "n"),
        "svcctl: error: --columns cannot be used with format msgpack, which the service writes\n"
        "hint: use one of: table, vertical, chart, csv, tsv, ndjson, json, json/simple, json/simple/compact, "
        "xls, parquet\n",
    ),
    "a secret": (
        (ROWS, "--from", "1h", "--dest", "s3", "--dest-param", "aws.secretkey=hush"),
        "svcctl: error: --dest-param aws.secretkey would show a secret in the process list\n"
        "hint: give it as aws.secretkey=@FILE, or use --dest-json FILE\n",
    ),
    "a preview with a secret": (
        (ROWS, *DAY, "--dest", "s3", *S3, "--dest-param", "aws.secretkey=@<folder>/rows.csv", "--dry-run"),
        "svcctl: the signature and the content-length are of the unmasked body\n",
    ),
}


@pytest.mark.parametrize("case", WORDS)
def test_a_query_prints_its_whole_message(service: Shell, tmp_path: Path, case: str) -> None:
    (tmp_path / "rows.csv").write_text("hush\n")
    arguments, said = WORDS[case]
    done = service("query", *(word.replace("<folder>", str(tmp_path)) for word in arguments))
    assert done.stderr.replace(str(tmp_path), "<folder>") == said


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
            "svcctl: error: --date-format does not apply to parquet: it stores dates as timestamps, not as text\n",
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
def test_a_usage_error_is_one_whole_message(service: Shell, arguments: list[str], code: int, stderr: str) -> None:
    done = service("query", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", stderr)


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (
            ("-o", "x.yaml"),
            "svcctl cannot write .yaml files",
            "endings that name a format are .csv, .tsv, .ndjson, .jsonl, .json, .msgpack, .xml, .xlsx, .parquet, each "
            "with .gz or .zst; --format names one for any file",
        ),
        (("-o", "x.csv.bz2"), "svcctl cannot write .bz2 files", "write .gz or .zst instead"),
        (("-o", "x.xls"), "x.xls would contain a spreadsheet in the format .xlsx", "name it .xlsx"),
        (("-o", "x.parquet.gz"), "parquet compresses by itself", "leave out .gz"),
        (("-o", "x.gz", "-f", "parquet"), "parquet compresses by itself", "leave out .gz"),
        (
            ("--sort", "n", "--top", "3", "--limit", "9"),
            "--limit and --top exclude each other",
            "the first rows of --sort: --top 3",
        ),
        (
            ("--sort", "n", "--skip", "1"),
            "--skip and --sort exclude each other: rows would be skipped before they are sorted",
            "leave out --skip; --top N prints the first N rows of --sort",
        ),
        (
            ("--sort", "n", "--follow"),
            "--follow and --sort exclude each other: endless rows cannot be sorted",
            None,
        ),
        (
            ("--fail-on-empty", "-f", "xls"),
            "--fail-on-empty cannot be used with format xls, whose rows are not counted",
            "use one of: table, vertical, chart, csv, tsv, ndjson, json, json/compact, json/simple, "
            "json/simple/compact, msgpack, parquet",
        ),
        (("--chart", "-f", "csv"), "--chart and --format csv exclude each other", "leave out one of them"),
        (
            ("--chart", "--follow"),
            "--follow cannot be combined with format chart, which needs the end of the result",
            "formats for --follow are: table, vertical, csv, tsv, ndjson, json/simple, json/simple/compact",
        ),
        (
            ("--chart",),
            "a chart of whole events has nothing to measure",
            "group them: group every 10m select count() as n; or choose: --columns eventdate,COLUMN",
        ),
    ],
)
def test_an_impossible_option_is_refused_before_a_request(
    shell: Shell, options: tuple[str, ...], message: str, hint: str | None
) -> None:
    end = () if "--follow" in options else ("--to", "1d")
    done = shell("query", "from sample", "--from", "2024-01-31", *end, *options)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert lines[0] == f"svcctl: error: {message}"
    assert hint is None or lines[1:] == [f"hint: {hint}"]
    assert not (shell.home / "data" / "service.sock").exists()


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
            "from sample wher n = 1",
            "svcctl: error: line 1, column 13: unexpected 'wher' (did you mean 'where'?) (CODE)\n"
            "  from sample wher n = 1\n"
            "              ^\n",
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
