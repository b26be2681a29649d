"""Help is plain, 80 columns wide and true: its examples run."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.shells import Shell
from support.terminal import need

from svcctl import cli, pages
from svcctl.completion.scripts import whole_tree


def commands() -> dict[str, Any]:
    """Every command and noun, by the words that name it."""

    def visit(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        yield " ".join(path), command
        for name, inner in getattr(command, "commands", {}).items():
            yield from visit(inner, (*path, name))

    return dict(visit(whole_tree(), ()))


COMMANDS = commands()


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_help_pages_are_plain_text_of_at_most_80_columns(columns: str, shell: Shell) -> None:
    script = (
        "import sys; from svcctl.cli import run\n"
        f"for path in {sorted(COMMANDS)!r}:\n"
        "    print('---', path, flush=True)\n"
        "    assert run([*path.split(), '--help']) == 0\n"
    )
    environment = {**shell.environment, "COLUMNS": columns, "CLICOLOR_FORCE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, encoding="utf-8", check=True
    )
    assert done.stderr == ""
    wide = [line for line in done.stdout.split("\n") if len(line) > 80 or not line.replace("…", "").isascii()]
    assert wide == []
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("noun", [path for path, command in COMMANDS.items() if hasattr(command, "commands")])
def test_no_description_in_a_list_of_commands_is_cut(noun: str, shell: Shell) -> None:
    page = shell(*noun.split(), "--help").stdout
    assert [line for line in page.split("Commands:")[1].split("\n") if line.endswith("...")] == []


@pytest.mark.parametrize("topic", pages.TOPICS)
def test_topics_are_plain_text_of_at_most_80_columns(topic: str) -> None:
    page = pages.read(topic)
    assert [line for line in page.split("\n") if len(line) > 80 or line != line.rstrip()] == []
    assert "\x1b" not in page


def test_help_alone_names_the_topics(shell: Shell) -> None:
    assert shell("help").stdout == (
        "Topics of 'svcctl help TOPIC'\n"
        "\n"
        "  dates           Dates of --from and --to\n"
        "  formats         Formats of --format\n"
        "  profiles        Profiles\n"
        "  environment     Environment\n"
        "  exit-codes      Exit codes\n"
        "  query-language  The query language\n"
        "  destinations    Destinations of --dest\n"
        "  export          Exports that a cron job can trust\n"
        "  service         The local service: requests and answers\n"
        "\n"
        "Help of a command: svcctl COMMAND --help\n"
    )


def test_a_topic_that_is_a_command_is_sent_there(shell: Shell) -> None:
    done = shell("help", "query")
    assert (done.returncode, done.stderr.split("\n")[0]) == (2, "svcctl: error: no help topic 'query'")
    assert done.stderr.endswith("; for the help of a command: svcctl COMMAND --help\n")


def test_svcctl_alone_shows_where_to_start(shell: Shell) -> None:
    done = shell()
    assert (done.returncode, done.stdout, done.stderr) == (0, cli.START + "\n", "")
    assert [line for line in cli.START.split("\n") if len(line) > 80] == []
    assert shell("-p", "prod", "--color", "never").stdout == cli.START + "\n"


@pytest.mark.parametrize("noun", ["profile", "service accounts"])
def test_a_noun_alone_shows_its_page_and_is_a_mistake(noun: str, shell: Shell) -> None:
    done = shell(*noun.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == shell(*noun.split(), "--help").stdout


# Examples


def examples() -> list[tuple[str, str]]:
    """Each line of a page that begins with a command, and its page; a backslash continues it on the next line."""
    texts = {f"svcctl {path}".rstrip(): str(command.help) for path, command in COMMANDS.items()}
    texts |= {topic: pages.read(topic) for topic in pages.TOPICS}
    texts["svcctl"] = "\n".join(line for line in cli.START.split("\n") if line.startswith(" "))
    found = []
    for name, page in texts.items():
        for line in re.sub(r"\\\n\s*", "", page).split("\n"):
            command = re.split(r"\s{3,}", line.strip())[0]
            if re.match(r"(svcctl|echo|zcat|source) .*", command) and "svcctl" in command:
                found.append((name, command))
    return found


EXIT_CODES = {"svcctl profile set prod": 2}
"""It asks, and nobody is there."""
DOMAIN = ("-p", "local-reseller", "domain")
ROLE = ("-p", "local-reseller", "role")


@pytest.fixture(scope="module")
def prepared(service: Shell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A home with the files that examples name, the profile prod, the domain acme, and a running service."""
    home = tmp_path_factory.mktemp("examples")
    (home / "bin").mkdir()
    (home / "bin" / "svcctl").write_text(f'#!/bin/sh\nexec {sys.executable} -m svcctl "$@"\n')
    (home / "bin" / "svcctl").chmod(0o755)
    (home / "errors.q").write_text("from demo.ecommerce.data where statusCode >= 500 limit 3")
    (home / "auth.q").write_text("from auth.all")
    (home / "request.json").write_text('{"query":"from auth.all limit 1","from":"1h","to":"now"}')
    (home / "roles.yaml").write_text("{name: Watch, policies: [Search]}\n")
    for secret in ("secret.txt", ".secret"):
        (home / secret).write_text("secret\n")
    (home / "dpkg.log").write_text("2026-01-31 10:00:00 status installed a:all 1\n")
    with gzip.open(home / "old.csv.gz", "wt") as stream:
        stream.write("created,n\n2026-01-31 10:00:00,1\n")
    shell = Shell(
        home,
        {
            "SVCCTL_DATA": service.environment["SVCCTL_DATA"],
            "PATH": f"{home}/bin:{os.environ['PATH']}",
            "SVCCTL_RETRIES": "3",  # something for --from-env
        },
    )
    known = {row["setting"]: row["value"] for row in service.ndjson("profile", "show", "local")}
    made = service.ndjson("service", "accounts", "key", "--domain", "local", "--admin")[0]
    fields = ("base_url=http://localhost", f"socket={known['socket']}", f"api_key={made['api_key']}", "api_secret=-")
    assert shell("profile", "set", "prod", *fields, stdin=f"{made['api_secret']}\n").returncode == 0
    shell(*DOMAIN, "create", "acme", "--plan", "basic", "--time", "14", "--if-needed")
    shell("service", "accounts", "user", "ann@acme.example", "acme@demo", "--role", "OWNER")
    yield shell
    shell(*DOMAIN, "rm", "acme", "--yes")
    shell("service", "accounts", "rm", "keys", str(made["api_key"]), "--yes")
    for job in shell.ndjson("job", "list"):
        shell("job", "rm", "--yes", str(job["id"]))


def launch(shell: Shell) -> dict[str, str]:
    launched = shell.ndjson("query", "from sample", "--from", "2024-01-31", "--to", "1d", "--dest", "donothing")
    return {"id": str(launched[0]["id"])}


def readers(shell: Shell) -> dict[str, str]:
    shell(*ROLE, "create", "acme", "--name", "Readers", "--policies", "Search", "--applications", "explorer")
    shell(*ROLE, "apply", "acme", "--file", "roles.yaml", "--yes")
    return {"SVCCTL_PROFILE": "local-reseller"}


def exported(shell: Shell) -> dict[str, str]:
    shell("export", "-F", "auth.q", "--from", "1ad", "--state", "auth", "-o", "out/{start:%F/%H}.csv.gz")
    return {}


BEFORE = {
    "svcctl export status": exported,
    "svcctl export verify": exported,
    "svcctl job wait": launch,
    "svcctl role create": lambda shell: {"SVCCTL_PROFILE": "local-reseller"},
    "svcctl role update": readers,
}
"""What must be there before the examples of a page, and in their environment."""
SHELLS = {"zsh": ["zsh", "-c", "autoload -U compinit; compinit -u -D; {}"], "fish": ["fish", "-c", "{}"]}
"""The examples that are for another shell than bash, by its name in them."""


@pytest.mark.parametrize("page", sorted({page for page, _ in examples()}))
def test_the_examples_of_a_page_run(page: str, prepared: Shell) -> None:
    config = prepared.home / ".config" / "svcctl" / "config.yaml"
    profiles = config.read_text()
    environment = prepared.environment | BEFORE.get(page, lambda shell: {})(prepared)
    for command in (command for name, command in examples() if name == page):
        shell = next((name for name in SHELLS if f" {name}" in command and "--install" not in command), "bash")
        need(shell)
        line = [
            word.replace("{}", command.replace("/var/log/", "")) for word in SHELLS.get(shell, ["bash", "-c", "{}"])
        ]
        done = subprocess.run(
            line,
            env=environment,
            cwd=prepared.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert done.returncode == EXIT_CODES.get(command, 0), f"$ {command}\n{done.stdout[-500:]}{done.stderr}"
    config.write_text(profiles)


def test_an_example_of_two_lines_is_found_whole() -> None:
    assert [command for name, command in examples() if name == "svcctl api"][1] == (
        'svcctl api POST /search/query -d \'{"query":"from auth.all","from":"1h","to":"now"}\''
    )
