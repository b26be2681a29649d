"""What svcctl answers to mistakes on the command line."""

from __future__ import annotations

import io

import pytest

from svcctl.cli import main
from svcctl.cli.context import Context
from svcctl.terminal.diagnostics import Diagnostics


def answered(*arguments: str) -> str:
    """What a wrong command line prints, without `svcctl: error: ` at its beginning."""
    seen = io.StringIO()
    assert main.run(arguments, Context(diagnostics=Diagnostics(seen))) == 2
    return seen.getvalue().removeprefix("svcctl: error: ").rstrip("\n")


SEE = "see 'svcctl query --help'"
EXPORT = "see 'svcctl export --help'"


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        # Commands of other tools, and the one to type
        ("range monday", "missing --from\nhint: add --from DATE, such as --from 1h; see 'svcctl range --help'"),
        ("service tables", "no such command 'tables'\nhint: use: svcctl tables"),
        ("job status x", "no such command 'status'\nhint: use: svcctl job show x"),
        ("job delete x", "no such command 'delete'\nhint: use: svcctl job rm x"),
        ("job kill x y", "no such command 'kill'\nhint: use: svcctl job stop x y"),
        ("job resume x", "no such command 'resume'\nhint: use: svcctl job start x"),
        ("domain remove acme", "no such command 'remove'\nhint: use: svcctl domain rm acme"),
        ("-p prod domain delete acme", "no such command 'delete'\nhint: use: svcctl --profile prod domain rm acme"),
        ("profile delete prod", "no such command 'delete'\nhint: use: svcctl profile rm prod"),
        ("profile test", "no such command 'test'\nhint: use: svcctl profile check"),
        ("role edit acme", "no such command 'edit'\nhint: use: svcctl role update acme"),
        ("service ls", "no such command 'ls'\nhint: use: svcctl tables"),
        ("service delete t.x", "no such command 'delete'\nhint: use: svcctl service drop t.x"),
        ("jobs", "no such command 'jobs'. Did you mean 'job'?\nhint: see 'svcctl --help'"),
        (
            "apply -F jobs.yaml",
            "no such command 'apply'\nhint: use: svcctl job apply --file FILE, or role apply, or domain apply",
        ),
        ("profile unset p2", "no such command 'unset'\nhint: use: svcctl profile set NAME KEY="),
        ("-p prod describe auth.all", "no such command 'describe'\nhint: use: svcctl --profile prod tables auth.all"),
        ("schema", "no such command 'schema'\nhint: use: svcctl tables TABLE"),
        ("queries", "no such command 'queries'\nhint: use: svcctl service queries list"),
        ("login", "no such command 'login'\nhint: use: svcctl profile set NAME"),
        (
            "query Q --from 1h --tail",
            "no such option: --tail\n"
            f"hint: new rows as they arrive: --follow; the last N rows: --sort eventdate:desc --top N; {SEE}",
        ),
        # Options
        (
            "export Q --from 1h -o x.csv --top=3",
            "no such option: --top\n"
            "hint: an export has all rows of its range; 'svcctl query … -o FILE' has --limit, --sort and "
            f"--top; {EXPORT}",
        ),
        (
            "export Q --from 1h -o x.csv --resume",
            f"no such option: --resume\nhint: run it again: it fetches what is missing; {EXPORT}",
        ),
        ("export Q --from 1h -o x.csv --every=1d", f"no such option: --every\nhint: use --window 1h; {EXPORT}"),
        (
            "query x --from 1h --where y",
            "no such option: --where\nhint: that is part of the query: 'from TABLE where … group by … select …'; "
            + SEE,
        ),
        (
            "query x --from 1h --max-time soon",
            "--max-time 'soon' cannot be used: it is not a length such as 90, 30s, 5m, 1h30m or 1d",
        ),
        # Values with blanks, without quotes
        (
            "query Q --from 1h -- x",
            "unexpected argument: x\n"
            f"hint: put the query and a date with a time in single quotes: svcctl query 'from …'; {SEE}",
        ),
        (
            "tables --from 31/01/2024 10:00 t x",
            "unexpected arguments: t x\nhint: put a date with a time in single quotes; see 'svcctl tables --help'",
        ),
        (
            "query Q --from 1h --dest kafka --name nightly",
            f"no such option: --name\nhint: name a job with --dest-param friendlyName=NAME; {SEE}",
        ),
        # Letters
        ("qury", "no such command 'qury'. Did you mean 'query'?\nhint: see 'svcctl --help'"),
        ("-", "no such command '-'\nhint: see 'svcctl --help'"),
        ("job -- --ids", "no such command '--ids'\nhint: see 'svcctl job --help'"),
        ("job lst", "no such command 'lst'. Did you mean 'list'?\nhint: see 'svcctl job --help'"),
        ("job strat x", "no such command 'strat'\nhint: see 'svcctl job --help'"),
        ("service rest", "no such command 'rest'\nhint: see 'svcctl service --help'"),
        ("help job nope", "no such command 'nope'\nhint: see 'svcctl job --help'"),
        ("help percentil", "no help topic or command 'percentil'\nhint: did you mean 'svcctl help percentile'?"),
        ("help date", "no help topic or command 'date'\nhint: did you mean 'svcctl help dates'?"),
        ("help p95", "no help topic or command 'p95'\nhint: in a query, write percentile(…, 95)"),
        ("help concat", "no help topic or command 'concat'\nhint: in a query, strings are joined by +"),
        (
            "help list",
            "no help topic or command 'list'\nhint: in a query, write collectdistinct(…); "
            "list is in 'svcctl help destinations' and 'svcctl help service'",
        ),
        (
            "help CRON",
            "no help topic or command 'CRON'\nhint: CRON is in 'svcctl help recipes' and 'svcctl help export'",
        ),
        (
            "help nonsense",
            "no help topic or command 'nonsense'\nhint: 'svcctl help' lists the topics, 'svcctl --help' the commands",
        ),
        # A noun that takes a query
        (
            "export stats auth",
            "'stats' is neither a query nor a verb of 'export'\nhint: use: svcctl export status auth",
        ),
        (
            "export verfy auth",
            "'verfy' is neither a query nor a verb of 'export'\nhint: use: svcctl export verify auth",
        ),
        ("export ls", "'ls' is neither a query nor a verb of 'export'\nhint: use: svcctl export status"),
        (
            "export -o status status a",
            "'status' must come before its options\nhint: use: svcctl export status -o status a",
        ),
        (
            "export --from 1h stauts auth -p prod",
            "'stauts' is neither a query nor a verb of 'export'\n"
            "hint: use: svcctl --profile prod export status --from 1h auth",
        ),
        (
            "export show auth -p prod",
            "'show' is neither a query nor a verb of 'export'\nhint: use: svcctl --profile prod export status auth",
        ),
        ("export show auth", "'show' is neither a query nor a verb of 'export'\nhint: use: svcctl export status auth"),
        (
            "export Q --columns uri",
            "no such option: --columns\nhint: choose columns in the query: 'from … select eventdate, uri'; "
            "see 'svcctl export --help'",
        ),
        ("export auth.all", "'auth.all' is not a query\nhint: put the query in single quotes: svcctl export 'from …'"),
        ("export from t", "'from' is not a query\nhint: put the query in single quotes: svcctl export 'from …'"),
        (
            "query from auth.all --from 1h",
            "unexpected argument: auth.all\n"
            f"hint: put the query and a date with a time in single quotes: svcctl query 'from …'; {SEE}",
        ),
        # Options
        ("query Q --form 1h", f"no such option: --form. Did you mean --from?\nhint: {SEE}"),
        ("query Q --frm 1h", f"no such option: --frm. Did you mean --from?\nhint: {SEE}"),
        ("query Q --port 1", f"no such option: --port\nhint: {SEE}"),
        ("query Q --desc", f"no such option: --desc\nhint: use --sort COLUMN:desc; {SEE}"),
        ("query Q --json", f"no such option: --json\nhint: use -f ndjson, or -f json for one document; {SEE}"),
        ("profile use x --json", "no such option: --json\nhint: see 'svcctl profile use --help'"),
        ("query Q --forced", f"no such option: --forced\nhint: {SEE}"),
        (
            "query Q -k",
            f"no such option: -k\nhint: to trust the service's CA: svcctl profile set NAME ca_bundle=FILE; {SEE}",
        ),
        # Values
        ("query Q --from", f"--from needs a value: DATE\nhint: such as 1h, 7d or 2024-01-31; {SEE}"),
        ("query Q --since", f"--since needs a value: DATE\nhint: such as 1h, 7d or 2024-01-31; {SEE}"),
        (
            "domain create acme",
            "missing --plan\nhint: add --plan PLAN: One of the reseller's price plans; 'svcctl service accounts list "
            "plans' has those of the local service; see 'svcctl domain create --help'",
        ),
        ("query Q", f"missing --from\nhint: add --from DATE, such as --from 1h; {SEE}"),
        ("query Q --dest", f"--dest needs a value: TYPE\nhint: one of Kafka, S3, HDFS, donothing; {SEE}"),
        ("query Q -o", f"-o needs a value: FILE\nhint: {SEE}"),
        ("query Q --color", "--color needs a value: WHEN\nhint: one of auto, always, never; see 'svcctl --help'"),
        ("query Q --limit abc", f"--limit 'abc' is not a whole number\nhint: {SEE}"),
        (
            "domain create acme --plan p --time x",
            "--time 'x' is not a number\nhint: see 'svcctl domain create --help'",
        ),
        ("query Q --skip -1", f"--skip -1 is less than 0\nhint: {SEE}"),
        ("query Q --timeout x", "--timeout 'x' cannot be used: it is not a length such as 90, 30s, 5m, 1h30m or 1d"),
        ("export Q --workers 99", "--workers 99 is not between 1 and 64\nhint: see 'svcctl export --help'"),
        ("query --chart=1 Q", f"--chart takes no value\nhint: {SEE}"),
        ("job list a", "unexpected argument: a\nhint: see 'svcctl job list --help'"),
        (
            "service --table t load x.csv",
            "no such option: --table\nhint: --table belongs after the verb; see 'svcctl service --help'",
        ),
        (
            "profile set",
            "missing NAME\nhint: usage: svcctl profile set NAME FIELD=VALUE… (NAME: Name of a profile); "
            "see 'svcctl profile set --help'",
        ),
        (
            "api GET",
            "missing PATH\nhint: usage: svcctl api [METHOD] PATH, such as svcctl api /search/jobs",
        ),
        ("api", "missing PATH\nhint: usage: svcctl api [METHOD] PATH, such as svcctl api /search/jobs"),
        (
            "api /search/query -d {}",
            "a request with a body needs its method\nhint: write svcctl api POST /search/query --data …",
        ),
        # One option under two names
        ("query Q --from 1h --since 2h", "--from and --since are the same option\nhint: give --from once"),
        ("query Q --since=1h --start 2h", "--since and --start are the same option\nhint: give --from once"),
        ("query Q --from 1h -n5 --limit 3", "-n and --limit are the same option\nhint: give --limit once"),
        (
            "export Q --from 1h -o x.csv -j 2 --workers 3",
            "-j and --workers are the same option\nhint: give --workers once",
        ),
    ],
)
def test_a_mistake_is_answered_with_what_to_type(typed: str, answer: str) -> None:
    assert answered(*("from t" if word == "Q" else word for word in typed.split())) == answer


def test_a_word_after_two_dashes_is_no_verb() -> None:
    assert answered("export", "--", "status").startswith("missing --output\n")


@pytest.mark.parametrize("text", ["-- all\nfrom t", "--all from t"])
def test_a_query_that_begins_like_an_option_is_answered_with_how_one_begins(text: str) -> None:
    assert answered("query", text, "--from", "1h") == (
        f"'{' '.join(text.split())}' is not a query\nhint: a query begins with from, and a comment with //; {SEE}"
    )


def test_the_arguments_of_a_command_are_quoted_in_the_answer() -> None:
    assert answered("role", "delete", "acme", "Night shift") == (
        "no such command 'delete'\nhint: use: svcctl role rm acme 'Night shift'"
    )
