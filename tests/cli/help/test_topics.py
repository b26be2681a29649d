"""Topics are their templates with the tables of the code."""

import re
from pathlib import Path

import svcctl
from svcctl.cli.help import TOPICS
from svcctl.cli.help.topics import FILLED, WRITTEN, read, table
from svcctl.terminal.diagnostics import EXIT_CODES

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


def test_a_table_wraps_its_cells_and_keeps_its_first_column() -> None:
    words = "a word after a word " * 5
    assert table([("name", words), ("another", "short")]) == (
        "  name     a word after a word a word after a word a word after a word a word\n"
        "           after a word a word after a word\n"
        "  another  short"
    )
