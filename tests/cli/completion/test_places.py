"""The table holds every command, option and value of the app, read from the markers in the commands' signatures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.tree import TREE

from svcctl.api import destinations
from svcctl.cli.completion.names import KINDS
from svcctl.cli.completion.places import CompletedCommand, CompletedParameter, Values, commands, table
from svcctl.cli.completion.words import FILES, QUERY, Word
from svcctl.terminal.formats import FORMATS

PLACES = {place.name: place.values for place in table(TREE).places}
COMMANDS: dict[str, CompletedCommand] = {command.path: command for command in commands(TREE)}


def parameters() -> list[tuple[str, CompletedParameter]]:
    return [(path, each) for path, command in COMMANDS.items() for each in (*command.options, *command.arguments)]


def test_the_scripts_or_names_know_every_kind() -> None:
    in_queries = {"columns", "language"}  # the scripts find out where a query names them
    assert {each.completes.kind for _, each in parameters()} | in_queries == {"", FILES, QUERY, *KINDS}


def test_an_option_takes_a_value_in_all_commands_or_in_none() -> None:
    valued = {name for _, each in parameters() for name in each.typed}
    flags = {name for _, each in parameters() if not each.takes_value for name in each.names}
    assert valued & flags == set()
    assert valued == set(table(TREE).valued)


def test_every_file_argument_completes_file_names() -> None:
    def metavars(command: Any, path: str) -> Iterator[tuple[str, str]]:
        for at, each in enumerate(each for each in command.params if each.param_type_name == "argument"):
            yield f"{path} {'*' if each.nargs < 0 else at}", each.metavar or ""
        for each in command.params:
            yield from ((f"{path} {name}", each.metavar or "") for name in each.opts if name.startswith("-"))
        for name, inner in getattr(command, "commands", {}).items():
            yield from metavars(inner, f"{path} {name}")

    files = [place for place, metavar in metavars(TREE, "svcctl") if metavar.strip("…") == "FILE"]
    usual = {place: f"* {place.split()[-1]}" for place in files}
    assert [place for place in files if PLACES.get(place, PLACES.get(usual[place], Values())).kind != FILES] == []
    assert {"svcctl query --output", "svcctl role lint *"} <= set(files)


def test_the_first_word_is_a_visible_command() -> None:
    assert {word.text for word in PLACES["svcctl 0"].words} == {
        *(
            "query",
            "tables",
            "export",
            "job",
            "domain",
            "role",
            "profile",
            "range",
            "service",
            "api",
            "completion",
            "help",
        ),
    }


def test_an_end_in_the_future_means_what_the_command_does_with_it() -> None:
    ends = {
        noun: [word.meaning for word in PLACES[f"svcctl {noun} -"].words if word.text == "--to"]
        for noun in ("query", "export", "range")
    }
    waits = "End of the range (not included); a query waits for a future end only with --follow."
    only = "End of the range (not included); in the future only with --lag or --state."
    assert ends == {"query": [waits], "export": [only], "range": [waits]}


def test_a_command_has_its_own_options_then_those_of_all() -> None:
    assert PLACES["svcctl range -"].words == (
        Word("--from", "Start of the range; 1h means one hour ago (see 'svcctl help dates')."),
        Word("--to", "End of the range (not included); a query waits for a future end only with --follow."),
        Word("--time-zone", "Time zone of dates, typed and printed: GMT+2, Europe/Berlin or local."),
        Word("--at", "Use this time instead of now (an absolute date)."),
        Word("--format", "Output format; auto is a table on a terminal and csv in a pipe."),
        Word("--profile", "Profile to use."),
        Word("--config", "Profiles file to use."),
        Word("--timeout", "How long to wait for the network."),
        Word("--retries", "How often a failed request is retried."),
        Word("--color", "auto, always or never."),
        Word("--quiet", "Print only errors, and notes on lines that a load skips."),
        Word("--verbose", "Log requests and responses to stderr (secrets masked)."),
        Word("--no-pager", "Do not show long output in a pager."),
        Word("--help", "Show the help page."),
    )


def test_a_query_has_every_format_and_a_list_those_of_lists() -> None:
    assert [word.text for word in PLACES["svcctl query --format"].words] == ["auto", *FORMATS]
    assert [word.text for word in PLACES["* --format"].words] == [
        "auto",
        *("table", "vertical", "csv", "tsv", "ndjson", "json"),
    ]


def test_an_operator_with_a_number_is_offered_with_one_two_and_seven() -> None:
    words = {word.text: word.meaning for word in PLACES["* --from"].words}
    assert [name for name in words if name.endswith("h")] == [
        "endmonth",
        "1h",
        "2h",
        "7h",
        "1ah",
        "2ah",
        "7ah",
        "now-1h",
    ]
    assert (words["1d"], words["7d"]) == ("1 day ago", "7 days ago")
    assert words["1ad"] == "1 day ago, at 00:00:00"


def test_the_keys_of_a_destination_are_those_of_its_type_and_a_secret_is_a_file() -> None:
    places = {kind: PLACES[f"svcctl query --dest-param {kind}"].words for kind in destinations.TYPES}
    assert [word.text for word in places["donothing"]] == ["friendlyName="]
    assert [word.text for word in places["hdfs"]][:2] == ["fs.defaultFS=", "file="]
    secrets = {word.text for words in places.values() for word in words if word.text.endswith("@")}
    assert secrets == {
        f"{row.key}=@" for type_ in destinations.TYPES.values() for row in type_.parameters if row.secret
    }
    assert {"aws.secretkey=@", "file.password=@"} <= secrets


def test_stop_completes_running_jobs_and_start_stopped_ones() -> None:
    assert {verb: PLACES[f"svcctl job {verb} *"].kind for verb in ("stop", "start", "show", "rm", "watch")} == {
        "stop": "running",
        "start": "stopped",
        "show": "jobs",
        "rm": "jobs",
        "watch": "jobs",
    }


def test_only_what_can_be_removed_is_offered_for_removal() -> None:
    assert [word.text for word in PLACES["svcctl service accounts rm 0"].words] == [
        *("keys", "resellers", "plans", "policies", "applications", "users"),
    ]


def test_existing_domains_are_not_offered_for_the_name_of_a_new_one() -> None:
    assert PLACES["svcctl domain show 0"].kind == "domains"
    assert "svcctl domain create 0" not in PLACES
