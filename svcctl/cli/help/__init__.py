"""The pages of help: plain text of at most 80 columns, for topics and for commands.

Pages are kept as files, so printing one loads nothing. `pages` makes them: a topic's from its template in
`templates/`, with the tables of the code filled in, a command's in `commands/` and the manual pages in `man/` from the
command tree. `query-language.txt` is made by `svcctl.service.language.page`.
"""

from __future__ import annotations

WIDTH = 80

TOPICS = (
    *("dates", "formats", "recipes", "profiles", "environment", "exit-codes", "query-language", "destinations"),
    *("export", "service", "cluster"),
)
PARTS = {
    "functions": ("query-language", "\nFunctions\n", "\nContinuous queries\n"),
    "examples": ("query-language", "\nExamples\n", "\nFunctions\n"),
}
"""Topics that are a part of a page: the page, and the headings at the part's beginning and behind its end."""


LANGUAGE = (
    *("from", "where", "select", "group", "every", "by", "as", "limit", "offset", "pragma"),
    *("and", "or", "not", "null"),
)
"""Words of the query language that are no functions; `svcctl help WORD` is the page of the language."""


def functions() -> list[str]:
    """The names of all functions, from the page that lists them."""
    lines = (line[2:].strip("`") for line in read("functions").split("\n") if line[:2] == "  " and line[2:3] != " ")
    return [
        name.rstrip("`") for name, parenthesis, _ in (line.partition("(") for line in lines) if parenthesis and name
    ]


def of_word(word: str) -> str | None:
    """The page of a word of the query language: a function's is what the language's page says of it."""
    if word in LANGUAGE:
        return read("query-language")
    blocks = read("functions").split("\n\n")
    found = [block for block in blocks if block.startswith((f"  {word}(", f"  `{word}`("))]
    return "\n\n".join([*found, "All functions: svcctl help functions"]) if found else None


def holding(word: str) -> list[str]:
    """The topics whose pages have the word, those with the most of it first."""
    import re

    whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    counts = {topic: len(whole.findall(read(topic))) for topic in TOPICS}
    return sorted((topic for topic, count in counts.items() if count), key=lambda topic: -counts[topic])


def read(topic: str) -> str:
    """The page of a topic, or its part of a page, without the newline at its end."""
    if topic in PARTS:
        whole, begin, end = PARTS[topic]
        text = read(whole)
        return text[text.index(begin) : text.index(end)].strip("\n")
    with open(f"{__path__[0]}/{topic}.txt", encoding="utf-8") as page:  # noqa: PTH123 (pathlib takes longer to load)
        return page.read().rstrip("\n")


def of_command(words: list[str]) -> str | None:
    """The page of the command that these words name, without the newline at its end; None if they name none."""
    if not all(word.isascii() and word.isalpha() for word in words):
        return None
    try:
        with open(f"{__path__[0]}/commands/{'-'.join(['svcctl', *words])}.txt", encoding="utf-8") as page:  # noqa: PTH123
            return page.read().rstrip("\n")
    except OSError:
        return None


def contents() -> str:
    """The topics with the first lines of their pages."""
    width = max(map(len, TOPICS))
    titles = [f"  {topic:<{width}}  {read(topic).splitlines()[0]}" for topic in TOPICS]
    parts = " and ".join(f"'svcctl help {name}'" for name in PARTS)
    return "\n".join(
        [
            *(
                "Topics of 'svcctl help TOPIC'",
                "",
                *titles,
                "",
                f"Parts of query-language: {parts}",
                "One function: svcctl help count",
            ),
            "Help of a command: svcctl help COMMAND, such as svcctl help job list",
        ]
    )
