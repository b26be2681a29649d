"""The pages in svcctl/pages are what their templates and the tables of the code say."""

import os
import subprocess

import pytest
from support.terminal import need

from svcctl.cli.help import TOPICS, read
from svcctl.cli.help.pages import DIRECTORY, FILLED, TEMPLATES, build, of_commands, table

HOW = "make the pages again: python -m svcctl.cli.help.pages"


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic != "query-language"])
def test_a_page_is_up_to_date(topic: str) -> None:
    assert read(topic) + "\n" == build(topic), HOW


def test_the_pages_of_commands_and_the_manual_are_up_to_date() -> None:
    files = of_commands()
    found = {
        f"{path.parent.name}/{path.name}" for folder in ("commands", "man") for path in (DIRECTORY / folder).iterdir()
    }
    assert found == set(files), HOW
    assert [
        name for name, content in files.items() if (DIRECTORY / name).read_text(encoding="utf-8") != content
    ] == [], HOW


def test_the_manual_is_read_by_man_and_its_examples_can_be_pasted() -> None:
    need("man", "groff")
    for path in sorted((DIRECTORY / "man").iterdir()):
        shown = subprocess.run(
            ["man", "--warnings", "-l", str(path)],
            env={"PATH": os.environ["PATH"], "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert shown.stderr == ""
        assert [line for line in shown.stdout.split("\n") if len(line) > 80] == []
        assert shown.stdout.startswith(f"{path.stem.upper()}(1)")
        assert "‐" not in shown.stdout.replace("‐\n", "")
        assert "’" not in shown.stdout
        assert ("'from auth.all" in shown.stdout) == ("'from auth.all" in path.read_text().replace(r"\(aq", "'"))


def test_every_topic_has_its_page_and_no_file_is_left_over() -> None:
    assert {path.stem for path in DIRECTORY.glob("*.txt")} == set(TOPICS)
    assert {path.stem for path in TEMPLATES.iterdir()} == set(TOPICS) - {"query-language"}


def test_the_templates_use_everything_that_can_be_filled_in() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES.iterdir())
    assert [name for name in FILLED if f"@{name}@" not in texts] == []


def test_a_table_wraps_its_cells_and_keeps_its_first_column() -> None:
    words = "a word after a word " * 5
    assert table([("name", words), ("another", "short")]) == (
        "  name     a word after a word a word after a word a word after a word a word\n"
        "           after a word a word after a word\n"
        "  another  short"
    )
