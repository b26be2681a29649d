"""What `svcctl query` says on stderr: each text is here once, and the tests beside this file state what happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.shells import Shell

DAY = ("--from", "2024-01-31", "--to", "1d")
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
    "a file that is there": (
        (ROWS, *DAY, "-o", "<folder>/rows.csv"),
        "svcctl: error: file <folder>/rows.csv already exists\n"
        "hint: choose another name, or overwrite it with --force\n",
    ),
    "a folder": (
        (ROWS, *DAY, "-o", "<folder>/new/"),
        "svcctl: error: <folder>/new/ ends with / and names no file\n"
        "hint: name one in it, as in -o <folder>/new/events.csv\n",
    ),
    "a pattern": (
        (ROWS, *DAY, "-o", "n-{from:%F}.csv.gz"),
        "svcctl: error: 'n-{from:%F}.csv.gz' has {from:%F} in it, where no date is filled in\n"
        "hint: patterns are for 'svcctl export'; the shell fills in a date with $(date +%F), "
        "in a crontab with $(date +\\%F)\n",
    ),
    "another ending": (
        (ROWS, *DAY, "-o", "<folder>/c.json", "-f", "csv"),
        "svcctl: <folder>/c.json holds csv, not json\n",
    ),
    "an ending like another": (
        (ROWS, *DAY, "-o", "<folder>/c.xls", "-f", "xls"),
        "svcctl: <folder>/c.xls holds xlsx, not xls\n",
    ),
    "an unknown ending": (
        (ROWS, *DAY, "-o", "<folder>/c.jsn"),
        "svcctl: <folder>/c.jsn holds csv: its ending names no format\n",
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
def test_what_a_query_says(service: Shell, tmp_path: Path, case: str) -> None:
    (tmp_path / "rows.csv").write_text("hush\n")
    arguments, said = WORDS[case]
    done = service("query", *(word.replace("<folder>", str(tmp_path)) for word in arguments))
    assert done.stderr.replace(str(tmp_path), "<folder>") == said
