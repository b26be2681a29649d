"""`svcctl help query-language`: the page is what the language's tables say, and its examples answer."""

from __future__ import annotations

import re

import pytest
from support.language_page import EXAMPLES, page
from support.shells import Shell

from svcctl.service.language import FUNCTIONS, RESERVED, parse

QUERIES = [
    re.sub(r"\s+", " ", found[0].strip()) for found in re.finditer(r"(?m)^    from .*\n(?:        .*\n)*", page())
]
"""Every query on the page: a paragraph of its own, indented by four blanks, its other lines by eight."""


def test_the_page_is_printed_with_the_names_of_its_sections(shell: Shell) -> None:
    done = shell("help", "query-language")
    title, sections, rest = done.stdout.split("\n\n", 2)
    assert (done.returncode, f"{title}\n\n{rest}", done.stderr) == (0, page(), "")
    assert sections.startswith("Sections: Groups; ")


def test_the_page_fits_a_terminal_and_is_plain_text() -> None:
    assert [line for line in page().split("\n") if len(line) > 80 or line != line.rstrip()] == []
    assert page().replace("…", "").replace("ë", "").isascii()


def test_the_page_names_every_function_and_reserved_word() -> None:
    words = set(re.findall(r"\w+", page()))
    assert {*FUNCTIONS, *RESERVED} <= words


def test_every_query_of_the_page_is_found() -> None:
    assert len(QUERIES) == len(EXAMPLES) + 4
    assert QUERIES[0] == 'from auth.all where result = "FAIL", not (user = "admin") select eventdate, user limit 5'


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_of_the_page_has_rows(service: Shell, query: str) -> None:
    # The page's query is put on one line; its comment may then only come last.
    assert parse(query).clauses or query.startswith("from service.access")
    # Requests become events within a second: a query that goes on waits for the first.
    waits = ["--follow"] if "service.access" in query else []
    # An incident of the demo events happens every 11 days.
    assert service.ndjson("query", query, "--from", "11d", "--limit", "1", *waits) != []
