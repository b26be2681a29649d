"""Help is plain, 80 columns wide and true: its examples run."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from support.delivered import deliver
from support.shells import Shell, add_command
from support.terminal import need
from support.tree import TREE

from svcctl.cli import main
from svcctl.cli.help import TOPICS, topics
from svcctl.dates.operators import DATE_FORMATS


def commands() -> dict[str, Any]:
    """Every command and noun, by the words that name it."""

    def visit(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        yield " ".join(path), command
        for name, inner in getattr(command, "commands", {}).items():
            yield from visit(inner, (*path, name))

    return dict(visit(TREE, ()))


COMMANDS = commands()


@pytest.mark.parametrize(("columns", "widest"), [(40, 40), (80, 80), (120, 80), (200, 80)])
def test_help_pages_are_plain_text_that_fits_the_terminal_and_cut_nothing(
    columns: int, widest: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    for path, command in COMMANDS.items():
        assert main.run([*path.split(), "--help"]) == 0
        page = capsys.readouterr().out
        literal = "\n".join(part for part in command.help.split("\n\n") if part.startswith("\b"))
        wide = [line for line in page.split("\n") if len(line) > widest and line.strip() not in literal]
        assert [line for line in wide if len(line.split()) > 1 and not line.startswith(("Usage: ", "  -"))] == []
        assert page.isascii()
        assert "\x1b" not in page
        flat = " ".join(page.split())
        texts = [" ".join(each.help.replace("…", "...").split()) for each in command.params if each.help]
        assert [text for text in texts if text not in flat] == []
        for inner in getattr(command, "commands", {}).values():
            about = inner.short_help or inner.help.split("\n\n")[0]
            assert inner.hidden or " ".join(about.split()).rstrip(".").replace("…", "...") in flat


@pytest.mark.parametrize("topic", TOPICS)
def test_topics_are_plain_text_of_at_most_80_columns(topic: str) -> None:
    page = topics.read(topic)
    assert [line for line in page.split("\n") if len(line) > 80 or line != line.rstrip()] == []
    assert "\x1b" not in page


def test_help_alone_names_the_topics(shell: Shell) -> None:
    assert shell("help").stdout == (
        "Topics of 'svcctl help TOPIC'\n"
        "\n"
        "  dates           Dates of --from and --to\n"
        "  formats         Formats of --format\n"
        "  recipes         Recipes\n"
        "  profiles        Profiles\n"
        "  environment     Environment\n"
        "  exit-codes      Exit codes\n"
        "  query-language  The query language\n"
        "  destinations    Destinations of --dest\n"
        "  export          Exports that a cron job can trust\n"
        "  apply           Domains, roles and jobs in files\n"
        "  service         The local service: requests and answers\n"
        "  loading         Loading files into tables\n"
        "  cluster         From a laptop to a cluster\n"
        "  library         Use svcctl in Python: import svcctl\n"
        "  functions       part of query-language\n"
        "  examples        part of query-language\n"
        "  proxy           part of environment\n"
        "\n"
        "One function: svcctl help count\n"
        "Help of a command: svcctl help COMMAND, such as svcctl help job list\n"
    )


def test_words_of_the_query_language_have_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["help", "count"]) == 0
    assert capsys.readouterr().out == (
        "  count() -> int8; count(any) -> int8\n"
        "      the number of rows, or the number of values that are not null. To count\n"
        "      the rows for which a condition is true, use sum(int(CONDITION))\n"
        "      count(status)  is  3\n"
        "\n"
        "All functions: svcctl help functions\n"
    )
    assert main.run(["help", "where"]) == 0
    assert capsys.readouterr().out == topics.read("query-language") + "\n"


@pytest.mark.parametrize("path", ["query", "job", "job list", "export status", "service accounts key"])
def test_help_of_a_command_is_its_page(path: str, shell: Shell) -> None:
    page = shell(*path.split(), "--help").stdout
    assert page.startswith(f"Usage: svcctl {path} [OPTIONS]")
    assert shell("help", *path.split()).stdout == page
    assert shell("-q", *path.split(), "-h").stdout == page


def test_help_of_a_noun_is_the_nouns_own_though_a_verb_follows(shell: Shell) -> None:
    assert shell("export", "--help", "status").stdout == shell("export", "--help").stdout


def headings(page: str) -> dict[str, list[str]]:
    """The names of options below each heading of a page."""
    found: dict[str, list[str]] = {}
    for block in page.split("\n\n"):
        title, *lines = block.split("\n")
        if not title.startswith(" ") and (
            names := re.findall(r"^  (?:-\w, )?(--[\w-]+)", "\n".join(lines), re.MULTILINE)
        ):
            found[title] = names
    return found


@pytest.mark.parametrize(
    ("command", "order"),
    [
        ("query", ["Range:", "Output:", "Rows:", "Query:", "Files:", "Columns of files:", "Run:", "Job:", "Other:"]),
        ("export", ["Output:", "Range:", "Query:", "Windows:", "Run:", "Other:"]),
    ],
)
def test_many_options_stand_under_headings_the_common_ones_first(command: str, order: list[str], shell: Shell) -> None:
    found = headings(shell(command, "--help").stdout)
    assert list(found) == order
    assert max(map(len, found.values())) <= 6
    assert found["Range:"][:2] == ["--from", "--to"]
    assert {"--format", "--output"} == set(found["Output:"][:2])
    assert found["Other:"] == ["--dry-run", "--help"]
    known = [name for each in COMMANDS[command].params for name in each.opts if name.startswith("--")]
    assert sorted(name for names in found.values() for name in names) == sorted([*known, "--help"])


def test_few_options_stand_in_one_list_though_some_have_headings_elsewhere(shell: Shell) -> None:
    assert list(headings(shell("range", "--help").stdout)) == ["Options:"]
    assert list(headings(shell("job", "list", "--help").stdout)) == ["Options:"]


def test_the_option_of_the_date_format_shows_dates_as_they_are_printed(service: Shell) -> None:
    page = re.sub(r"\d", "0", " ".join(service("query", "--help").stdout.split()))
    for name in DATE_FORMATS:
        options = ("--from", "1d", "-f", "csv", "--no-header", "--date-format", name)
        printed = service("query", "from demo.ecommerce.data select eventdate limit 1", *options).stdout.strip()
        assert re.search(rf"{name}( and sql)? (is|are) {re.escape(re.sub('[0-9]', '0', printed))}[,.]", page)


def test_functions_and_examples_are_parts_of_the_page_of_the_language(shell: Shell) -> None:
    functions, examples = shell("help", "functions").stdout, shell("help", "examples").stdout
    assert (functions.split("\n")[0], examples.split("\n")[0]) == ("Functions", "Examples")
    assert f"{examples}\n{functions}" in topics.read("query-language")
    assert "percentile(" in functions
    assert "Continuous" not in functions


def test_a_topic_comes_before_a_command_of_its_name(shell: Shell) -> None:
    assert shell("help", "export").stdout == topics.read("export") + "\n"


def test_svcctl_alone_shows_where_to_start(shell: Shell) -> None:
    done = shell()
    assert (done.returncode, done.stdout, done.stderr) == (0, main.START + "\n", "")
    assert [line for line in main.START.split("\n") if len(line) > 80] == []
    assert shell("-p", "prod", "--color", "never").stdout == main.START + "\n"


@pytest.mark.parametrize("noun", ["profile", "service accounts"])
def test_a_noun_alone_shows_its_page_and_is_a_mistake(noun: str, shell: Shell) -> None:
    done = shell(*noun.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == shell(*noun.split(), "--help").stdout


# Examples


def examples() -> list[tuple[str, str]]:
    """Each line of a page that begins with a command, and its page; a backslash continues it on the next line.

    On the page of a topic an example is indented: a line of its paragraphs may begin with any word.
    """
    texts = {f"svcctl {path}".rstrip(): str(command.help) for path, command in COMMANDS.items()}
    elsewhere = ("recipes", "apply")  # tests/cli/help runs these
    pages = {topic: topics.read(topic) for topic in TOPICS if topic not in elsewhere}
    for name, page in (pages | {"svcctl": main.START}).items():
        texts[name] = "\n".join(line for line in page.split("\n") if line.startswith(" "))
    found = []
    for name, page in texts.items():
        for line in re.sub(r"\\\n\s*", "", page).split("\n"):
            command = re.split(r"\s{3,}", line.strip())[0]
            if re.match(r"(svcctl|echo|zcat|source) .*", command) and "svcctl" in command:
                found.append((name, command))
    return found


EXIT_CODES = {
    "svcctl profile set prod": 2,  # it asks, and nobody is there
    "svcctl service accounts token KEY --expires 8h": 4,
    "svcctl service compact": 2,  # the running service has no shared folder
}
DOMAIN = ("-p", "local-reseller", "domain")
ROLE = ("-p", "local-reseller", "role")


@pytest.fixture(scope="module")
def prepared(service: Shell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A home with the files that examples name, the profile prod, the domain acme, and a running service."""
    home = tmp_path_factory.mktemp("examples")
    add_command(home)
    (home / "errors.q").write_text("from demo.ecommerce.data where statusCode >= 500 limit 3")
    (home / "auth.q").write_text("from auth.all")
    (home / "request.json").write_text('{"query":"from auth.all limit 1","from":"1h","to":"now"}')
    (home / "roles.yaml").write_text("{name: Watch, policies: [Search]}\n")
    for secret in ("secret.txt", ".secret"):
        (home / secret).write_text("secret\n")
    (home / "orders.csv").write_text("time,srcIp,n\n2026-01-31 10:00:00,10.0.0.1,7\n")
    (home / "dpkg.log").write_text("2026-01-31 10:00:00 status installed a:all 1\n")
    (home / "access.log").write_text('10.0.0.1 - - [31/Jan/2026:10:00:00 +0000] "GET / HTTP/1.1" 500 7\n')
    for name, code in (("a.csv", 1), ("b.csv", 2)):
        (home / name).write_text(f"time,code\n2026-01-31 10:00:00,{code}\n")
    with gzip.open(home / "old.csv.gz", "wt") as stream:
        stream.write("created,n\n2026-01-31 10:00:00,1\n")
    with gzip.open(home / "old.log.gz", "wt") as stream:
        stream.write("2026-01-31 10:00:00 started\n")
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


def loaded(shell: Shell) -> dict[str, str]:
    shell("service", "load", "orders.csv", "-t", "shop.o", "--tables", "tables", "--create")
    return {}


def kept(shell: Shell) -> dict[str, str]:
    shell("service", "load", "orders.csv", "-t", "shop.o")
    return {}


def settled(shell: Shell) -> dict[str, str]:
    for name, role in (("bob", "ADMIN"), ("eve", "OWNER")):
        shell("service", "accounts", "user", f"{name}@acme.example", "acme@demo", "--role", role)
    shell("service", "accounts", "key", "--domain", "acme@demo", "--name", "ann")
    return {}


BEFORE = {
    "svcctl export reconcile": exported,
    "svcctl export rm": exported,
    "svcctl export status": exported,
    "svcctl export verify": exported,
    "svcctl job wait": launch,
    "svcctl role create": lambda shell: {"SVCCTL_PROFILE": "local-reseller"},
    "svcctl role export": readers,
    "svcctl role update": readers,
    "svcctl service accounts rm": settled,
    "svcctl service compact": loaded,
    "svcctl service trim": kept,
}
"""What must be there before the examples of a page, and in their environment."""
SHELLS = {"zsh": ["zsh", "-c", "autoload -U compinit; compinit -u -D; {}"], "fish": ["fish", "-c", "{}"]}
"""The examples that are for another shell than bash, by its name in them."""


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted({page for page, _ in examples()}))
def test_the_examples_of_a_page_run(page: str, prepared: Shell, request: pytest.FixtureRequest) -> None:
    config = prepared.home / ".config" / "svcctl" / "config.yaml"
    profiles = config.read_text()
    environment = prepared.environment | BEFORE.get(page, lambda shell: {})(prepared)
    if page == "svcctl job verify":
        bucket = request.getfixturevalue("s3_peer").fresh_bucket()
        deliver(prepared, bucket, "failed-logins", "from auth.all", "--from", "1h", "--to", "now")
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


@pytest.mark.parametrize(
    "word", ["proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "NO_PROXY", "no_proxy", "HTTP_PROXY"]
)
def test_the_variables_of_proxies_have_a_page(shell: Shell, word: str) -> None:
    page = shell("help", word).stdout
    assert page.startswith("Proxies\n\n  https_proxy, HTTPS_PROXY  proxy of https services\n")
    assert page.strip() in shell("help", "environment").stdout


@pytest.mark.parametrize("word", ["SSL_CERT_FILE", "ssl_cert_dir", "SVCCTL_TOKEN", "NO_COLOR"])
def test_a_variable_has_the_page_of_the_environment(shell: Shell, word: str) -> None:
    assert shell("help", word).stdout == shell("help", "environment").stdout
