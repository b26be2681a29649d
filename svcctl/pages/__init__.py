"""The topics of `svcctl help`, each a page of plain text of at most 80 columns.

A page is made from its template in `templates/` by `svcctl.pages.build`, which fills in the tables, and kept as a file:
it can be linked to, and printing it loads nothing. `query-language.txt` is made by `svcctl.service.language.page`.
"""

from __future__ import annotations

TOPICS = (
    *("dates", "formats", "profiles", "environment", "exit-codes", "query-language", "destinations", "export"),
    "service",
)


def read(topic: str) -> str:
    """The page of a topic, without the newline at its end."""
    with open(f"{__path__[0]}/{topic}.txt", encoding="utf-8") as page:  # noqa: PTH123 (pathlib takes longer to load)
        return page.read().rstrip("\n")


def contents() -> str:
    """The topics with the first lines of their pages."""
    width = max(map(len, TOPICS))
    titles = [f"  {topic:<{width}}  {read(topic).splitlines()[0]}" for topic in TOPICS]
    return "\n".join(["Topics of 'svcctl help TOPIC'", "", *titles, "", "Help of a command: svcctl COMMAND --help"])
