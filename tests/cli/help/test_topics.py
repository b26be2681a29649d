"""Topics are their templates with the tables of the code."""

import re
from pathlib import Path

import pytest

import svcctl
from svcctl.cli.commands import NOUNS
from svcctl.cli.help import PARTS, TOPICS
from svcctl.cli.help.topics import FILLED, WRITTEN, read, sections, table
from svcctl.errors import EXIT_CODES

TEMPLATES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in (Path(svcctl.__file__).parent / "cli" / "help" / "templates").iterdir()
}


def test_every_topic_has_its_template_and_no_file_is_left_over() -> None:
    assert set(TEMPLATES) == set(TOPICS) - {WRITTEN}


def test_a_template_uses_everything_that_can_be_filled_in_and_nothing_else() -> None:
    asked = {topic: set(re.findall(r"@([a-z_]+)@", text)) for topic, text in TEMPLATES.items()}
    assert {topic: names for topic, names in asked.items() if names} == {topic: {*FILLED[topic]()} for topic in FILLED}


def test_a_page_is_its_template_with_a_table_of_the_code() -> None:
    title, _, rows = read("exit-codes").partition("\n\n")
    assert (title, re.findall(r"(?m)^ +(\d+)  ", rows)) == ("Exit codes", [str(row.code) for row in EXIT_CODES])
    assert [line for topic in TEMPLATES for line in read(topic).split("\n") if re.search("@[a-z_]+@", line)] == []


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_longer_than_a_screen_names_its_sections_below_its_title(topic: str) -> None:
    page = read(topic)
    _, line, rest = page.split("\n\n", 2)
    assert (len(page.split("\n")) > 24) == line.startswith("Sections: ")
    if line.startswith("Sections: "):
        names = " ".join(line.split()).removeprefix("Sections: ").removesuffix(".").split("; ")
        starts = [f"\n\n{rest}".find(f"\n\n{name}") for name in names]
        assert starts == sorted({*starts})
        assert -1 not in starts


def test_the_sections_of_a_page_are_its_headings_without_their_details() -> None:
    page = "Title\n\nA sentence.\n\nOne\n\n  indented\n\nTwo: more\n\nTwo: others\n\nA list:\n\ntwo\nlines"
    assert sections(page) == ["One", "Two"]


def test_a_table_wraps_its_cells_and_keeps_its_first_column() -> None:
    words = "a word after a word " * 5
    assert table([("name", words), ("another", "short")]) == (
        "  name     a word after a word a word after a word a word after a word a word\n"
        "           after a word a word after a word\n"
        "  another  short"
    )


def test_loading_has_a_page_and_the_page_of_the_service_has_its_routes_accounts_and_process() -> None:
    service, loading = (" ".join(read(topic).split()) for topic in ("service", "loading"))
    for word in ("logfmt", "RFC 3164", "ISO 8601", "--types", "--id", "--replace", "Delta Lake", "--create"):
        assert (word in loading, word in service) == (True, False), word
    for word in ("POST /service/load ", "credentials.json", "service serve' without --listen", "GET /service/health"):
        assert (word in loading, word in service) == (False, True), word
    assert "'svcctl help loading'" in service


def test_every_topic_that_help_names_exists_and_for_loading_it_is_the_page_of_loading() -> None:
    folder = Path(svcctl.__file__).parent
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.suffix in (".py", ".txt")}
    named = {(path.name, word) for path, text in texts.items() for word in re.findall(r"svcctl help ([a-z-]+)'", text)}
    words = {*TOPICS, *PARTS, *NOUNS}
    assert sorted((name, word) for name, word in named if word not in words) == []
    assert ("loading.py", "loading") in named
    assert ("loading.py", "service") not in named
