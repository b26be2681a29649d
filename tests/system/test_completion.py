"""Completion as a user sees it: real keys typed into bash, zsh and fish, each with its script."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import ROOT
from support.shells import Shell, add_command
from support.terminal import COMMANDS, PROMPT, Terminal, open_shell

from svcctl.exports.state import State, States

pytestmark = pytest.mark.slow  # the shells and clients are not pip's

SCRIPTS = ROOT / "completions"
SOURCES = {
    "bash": f"source {SCRIPTS}/svcctl.bash",
    "zsh": f"autoload -U compinit; compinit -u -D; source {SCRIPTS}/_svcctl",
    "fish": f"source {SCRIPTS}/svcctl.fish",
}

OPTIONS = {
    "bash": "set -euf -o pipefail -o posix; shopt -s nocasematch failglob nocaseglob localvar_inherit",
    "zsh": "setopt ksh_arrays sh_word_split no_unset glob_subst warn_create_global force_float re_match_pcre",
    "fish": "set -gx LC_ALL C",
}
"""Options that change how scripts of a shell are understood."""


@dataclass(frozen=True)
class Prompt:
    """A shell with completion, and a record of its calls of svcctl."""

    terminal: Terminal
    run: Shell
    calls_file: Path

    def completed(self, typed: str, line: str) -> None:
        """Tab completes what was typed to this line."""
        self.terminal.type(typed, "Tab")
        self.terminal.wait_for(f"{PROMPT} {line}")
        self.terminal.clear()

    def typed_on(self, typed: str, line: str) -> None:
        """Tab completes what was typed to this line, whose quotes stay open for what follows."""
        self.terminal.type(typed, "Tab")
        self.terminal.wait_for(f"{PROMPT} {line}")
        self.terminal.type("|'")
        screen = self.terminal.wait_for("|'")
        assert screen.split("\n")[0].replace(" |", "|") == f"{PROMPT} {line}|'"
        self.terminal.clear()

    def offered(self, typed: str, *words: str) -> None:
        """Tab lists these words."""
        self.terminal.type(typed, "Tab", "Tab", "Tab")
        self.terminal.wait_for(*words)
        self.terminal.clear()

    def know(self, kind: str) -> None:
        """Fill the cache of a kind, however long a busy machine takes: a prompt would not wait for it."""
        deadline = time.monotonic() + 20
        while not self.run("complete", kind).stdout:
            assert time.monotonic() < deadline

    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


@pytest.fixture(params=COMMANDS)
def prompt(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Prompt]:
    """A shell without a service, in a home with the profile `prod`."""
    yield from _prompt(request.param, tmp_path, {})


@pytest.fixture(params=COMMANDS)
def prompt_with_service(request: pytest.FixtureRequest, tmp_path: Path, service: Shell) -> Iterator[Prompt]:
    """A shell where the local service runs."""
    yield from _prompt(request.param, tmp_path, {"SVCCTL_DATA": service.environment["SVCCTL_DATA"]})


@pytest.fixture(params=COMMANDS)
def careful_prompt(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Prompt]:
    """A shell with options that are not usual."""
    yield from _prompt(request.param, tmp_path, {}, options=OPTIONS[request.param])


def _prompt(name: str, directory: Path, variables: dict[str, str], options: str = "true") -> Iterator[Prompt]:
    shell = with_command(Shell(directory, variables))
    shell("profile", "set", "prod", "base_url=https://events.example.com")
    terminal = open_shell(name, directory, shell.environment, f"{options}; {SOURCES[name]}")
    try:
        yield Prompt(terminal, shell, directory / "calls")
    finally:
        terminal.close()


def with_command(shell: Shell) -> Shell:
    """The shell with a command svcctl that writes its arguments to the file `calls`."""
    command = add_command(shell.home, f'echo "$@" >>{shell.home}/calls')
    return Shell(shell.home, {**shell.variables, "PATH": f"{command.parent}:{os.environ['PATH']}"})


def test_fixed_words_are_completed_without_python(prompt: Prompt) -> None:
    prompt.completed("svcctl que", "svcctl query")
    prompt.completed("svcctl prof", "svcctl profile")
    prompt.completed("svcctl service acc", "svcctl service accounts")
    prompt.completed("svcctl query --fail", "svcctl query --fail-on-empty")
    prompt.completed("svcctl query --format ver", "svcctl query --format vertical")
    prompt.completed("svcctl query --format=ver", "svcctl query --format=vertical")
    prompt.completed("svcctl query -f ver", "svcctl query -f vertical")
    prompt.completed("svcctl query --from endm", "svcctl query --from endmonth")
    prompt.completed("svcctl -p prod --color nev", "svcctl -p prod --color never")
    prompt.completed("svcctl job list --color nev", "svcctl job list --color never")
    prompt.completed("svcctl job list --status COM", "svcctl job list --status COMPLETED")
    prompt.completed("svcctl job list --type s", "svcctl job list --type S3")
    prompt.completed("svcctl query --dest kaf", "svcctl query --dest Kafka")
    prompt.completed("svcctl query --dest HD", "svcctl query --dest HDFS")
    prompt.completed("svcctl query --dest S3 --dest-param aws.b", "svcctl query --dest S3 --dest-param aws.bucket=")
    prompt.completed("svcctl query --dest hdfs --dest-param fi", "svcctl query --dest hdfs --dest-param file=")
    prompt.completed("svcctl query --output-format ver", "svcctl query --output-format vertical")
    prompt.completed("svcctl help exit", "svcctl help exit-codes")
    prompt.completed("svcctl help job sto", "svcctl help job stop")
    prompt.completed("svcctl profile set prod auth=sig", "svcctl profile set prod auth=signature")
    prompt.completed("svcctl service load --format parq", "svcctl service load --format parquet")
    prompt.typed_on("svcctl query 'fr", "svcctl query 'from")
    prompt.typed_on('svcctl export "', 'svcctl export "from')
    prompt.terminal.type("svcctl query 'from auth.all wh", "Tab")
    prompt.terminal.wait_for(f"{PROMPT} svcctl query 'from auth.all where")
    prompt.terminal.type("user|'")
    prompt.terminal.wait_for(f"{PROMPT} svcctl query 'from auth.all where user|'")
    prompt.terminal.clear()
    prompt.typed_on("svcctl query --from 1h 'from  auth.all  gr", "svcctl query --from 1h 'from  auth.all  group")
    prompt.offered("svcctl query 'from auth.all ", "where", "select", "group")
    prompt.offered("svcctl job ", "list", "show", "stop", "start", "watch")
    prompt.offered("svcctl query --format j", "json/compact", "json/simple/compact")
    assert prompt.calls() == []


def test_words_names_and_files_are_completed_whatever_options_the_shell_has(careful_prompt: Prompt) -> None:
    (careful_prompt.calls_file.parent / "plain.q").write_text("from auth.all")
    careful_prompt.completed("svcctl query --fail", "svcctl query --fail-on-empty")
    careful_prompt.completed("svcctl query --file pla", "svcctl query --file plain.q")
    careful_prompt.completed("svcctl query -F pla", "svcctl query -F plain.q")
    careful_prompt.completed("svcctl query -f ver", "svcctl query -f vertical")
    careful_prompt.completed("svcctl service queries set a 'fr", "svcctl service queries set a 'from")
    careful_prompt.completed("svcctl -p pr", "svcctl -p prod")
    careful_prompt.completed("svcctl api GET /search/q", "svcctl api GET /search/query")


def test_file_names_are_completed_for_options_that_take_a_file(prompt: Prompt) -> None:
    home = prompt.calls_file.parent
    (home / "errors of may.q").write_text("from auth.all")
    prompt.completed("svcctl query --file errors", "svcctl query --file errors\\ of\\ may.q")
    (home / "plain.q").write_text("from auth.all")
    prompt.completed("svcctl query --file=pla", "svcctl query --file=plain.q")
    assert prompt.calls() == []


def test_an_export_is_completed_by_its_state_and_by_its_file(prompt: Prompt, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["prompt"]
    home = prompt.calls_file.parent
    States(home / ".local/state/svcctl/exports").save("nightly", State("a.csv", 0))
    (home / "overview.csv.gz").write_bytes(b"")
    (home / "days").mkdir()
    (home / "days" / "the first.csv").write_bytes(b"")
    prompt.completed("svcctl export verify ove", "svcctl export verify overview.csv.gz")
    prompt.completed("svcctl export verify days/t", "svcctl export verify days/the\\ first.csv")
    prompt.completed("svcctl export status nig", "svcctl export status nightly")
    if name != "fish":  # which completes what both have
        (home / "nightly").mkdir()
        prompt.completed("svcctl export status nigh", "svcctl export status nightly")
        (home / "nightly").rmdir()
    (home / ".overview.csv.gz.export").mkdir()
    prompt.terminal.type("svcctl export verify ", "Tab", "Tab", "Tab")
    screen = prompt.terminal.wait_for("nightly", "days", "overview.csv.gz")
    assert "gz.export" not in screen
    assert name == "fish" or screen.index("nightly") < screen.index("days")  # fish sorts all of them
    prompt.terminal.clear()


def test_profiles_are_completed_by_name(prompt: Prompt) -> None:
    prompt.completed("svcctl -p pr", "svcctl -p prod")
    prompt.completed("svcctl profile use pr", "svcctl profile use prod")
    prompt.offered("svcctl job list --profile=", "prod", "local-reseller")
    assert set(prompt.calls()) == {"complete profiles"}


def test_time_zones_are_completed_by_their_names(prompt: Prompt) -> None:
    prompt.completed("svcctl query --time-zone Europe/Berl", "svcctl query --time-zone Europe/Berlin")
    prompt.completed("svcctl service load --time-zone=America/New_", "svcctl service load --time-zone=America/New_York")
    prompt.completed("svcctl range --time-zone GMT+1 --from tod", "svcctl range --time-zone GMT+1 --from today")
    assert prompt.calls() == ["complete zones"] * 2


def test_a_service_that_cannot_be_reached_completes_nothing_and_prints_nothing(prompt: Prompt) -> None:
    # The host of the profile does not exist, and the local service is not running.
    for typed in ("svcctl -p prod job stop 3", "svcctl query 'from au", "svcctl -p nobody domain show a"):
        prompt.terminal.type(typed, "Tab", "Tab", "x")
        screen = prompt.terminal.wait_for(f"{typed}x")
        assert screen.strip() == f"{PROMPT} {typed}x"
        prompt.terminal.clear()
    assert set(prompt.calls()) == {
        "-p prod complete running",
        "complete tables",
        "-p nobody complete domains",
    }


@pytest.mark.parametrize("uninstalled", [False, True])
@pytest.mark.parametrize("name", COMMANDS)
def test_an_installed_script_works_in_a_new_shell_until_it_is_uninstalled(
    name: str, uninstalled: bool, shell: Shell, tmp_path: Path
) -> None:
    shell = with_command(shell)
    done = shell("completion", name, "--install")
    if uninstalled:
        assert shell("completion", "--uninstall").returncode == 0
    lines = {
        "bash": done.stderr.split("\n")[1].rpartition(": ")[2],
        "zsh": done.stderr.split("\n")[1].rpartition(": ")[2],
        "fish": "true",  # it needs no line in its configuration
    }
    command = [word for word in COMMANDS[name] if word != "--no-config"]
    terminal = open_shell(name, tmp_path, shell.environment, lines[name], command=command)
    try:
        terminal.type("svcctl query --fail", "Tab")
        if uninstalled:
            terminal.type("x")
        terminal.wait_for(f"{PROMPT} svcctl query --fail{'x' if uninstalled else '-on-empty'}")
    finally:
        terminal.close()


def test_tables_are_completed_inside_the_quotes_of_a_query(prompt_with_service: Prompt) -> None:
    prompt_with_service.know("tables")
    prompt_with_service.typed_on("svcctl query 'from fire", "svcctl query 'from firewall.all")
    prompt_with_service.typed_on('svcctl query "from fire', 'svcctl query "from firewall.all')
    prompt_with_service.typed_on(
        "svcctl query --from 1h 'from demo.", "svcctl query --from 1h 'from demo.ecommerce.data"
    )


def test_columns_are_completed_where_a_query_names_them(prompt_with_service: Prompt) -> None:
    prompt_with_service.know("tables")
    for typed, line in (
        ("'from firewall.all where dstP", "'from firewall.all where dstPort"),
        ("'from firewall.all where dstPort = 22 group by srcI", "'from firewall.all where dstPort = 22 group by srcIp"),
        ("'from firewall.all select proto, bytesI", "'from firewall.all select proto, bytesIn"),
    ):
        prompt_with_service.typed_on(f"svcctl query {typed}", f"svcctl query {line}")


def test_functions_and_keywords_are_completed_where_a_query_names_columns(prompt_with_service: Prompt) -> None:
    prompt_with_service.know("tables")
    for typed, line in (
        ("'from firewall.all group select percen", "'from firewall.all group select percentile"),
        ("'from firewall.all where dstPort = 22 gro", "'from firewall.all where dstPort = 22 group"),
    ):
        prompt_with_service.typed_on(f"svcctl query {typed}", f"svcctl query {line}")


@pytest.mark.parametrize("prompt_with_service", ["bash", "zsh"], indirect=True)  # fish cuts the words before off
def test_the_next_words_of_a_query_are_listed_without_the_query(prompt_with_service: Prompt) -> None:
    prompt_with_service.know("tables")
    prompt_with_service.terminal.type("svcctl query 'from firewall.all  where st", "Tab", "Tab")
    screen = prompt_with_service.terminal.wait_for("startswith", "stddev")
    assert screen.count("firewall.all") == screen.count("svcctl query '")


def test_columns_to_print_and_to_sort_by_are_completed(prompt_with_service: Prompt) -> None:
    prompt_with_service.know("tables")
    line = "svcctl query 'from firewall.all where dstPort = 22' --from 1h --sort"
    prompt_with_service.completed(f"{line} bytesI", f"{line} bytesIn")
    line = "svcctl query --from 1h 'from auth.all group by user select count() as total' --sort"
    prompt_with_service.completed(f"{line} tot", f"{line} total")
    prompt_with_service.completed("svcctl job list --columns fri", "svcctl job list --columns friendlyName")


@pytest.mark.parametrize("prompt_with_service", ["bash", "zsh"], indirect=True)  # fish puts a space behind every word
def test_a_direction_can_follow_a_completed_column_to_sort_by(prompt_with_service: Prompt) -> None:
    terminal, line = prompt_with_service.terminal, "svcctl query 'from t select a as total' --from 1h --sort"
    terminal.type(f"{line} tot", "Tab")
    terminal.wait_for(f"{PROMPT} {line} total")
    terminal.type(":desc")
    terminal.wait_for("desc")
    assert terminal.screen() == f"{PROMPT} {line} total:desc"


def test_jobs_are_completed_by_id_with_their_friendly_names(prompt_with_service: Prompt, service: Shell) -> None:
    launched = [
        str(
            service.ndjson(
                *("query", "from sample", "--from", "2024-01-31", "--to", "1d", "--dest", "donothing"),
                *("--dest-param", f"friendlyName=night_{number}"),
            )[0]["id"]
        )
        for number in (1, 2)
    ]
    try:
        prompt_with_service.know("jobs")
        prompt_with_service.offered("svcctl job show ", *launched, "night_1", "night_2")
        prompt_with_service.completed(f"svcctl job show {launched[0][:13]}", f"svcctl job show {launched[0]}")
        prompt_with_service.offered("svcctl job show nigh", "night_1", "night_2")
        line = "svcctl job restart night_1 nigh"  # what the line has is not offered again
        prompt_with_service.completed(line, line.removesuffix("nigh") + "night_2")
    finally:
        service("job", "rm", "--yes", *launched)
