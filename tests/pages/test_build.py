"""The pages in svcctl/pages are what their templates and the tables of the code say."""

import pytest

from svcctl.pages import TOPICS, read
from svcctl.pages.build import DIRECTORY, FILLED, TEMPLATES, build, table

HOW = "make the pages again: python -m svcctl.pages.build"


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic != "query-language"])
def test_a_page_is_up_to_date(topic: str) -> None:
    assert read(topic) + "\n" == build(topic), HOW


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
