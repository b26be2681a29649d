"""Manual pages in the roff of man(7): one for svcctl, and one for each group of commands such as `svcctl job`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from svcctl.cli.help import TOPICS
from svcctl.cli.help.command import HELP, Page, Row, described
from svcctl.cli.help.topics import read


def pages(tree: Any) -> dict[str, str]:
    """Return the manual pages of a command tree, by the names of their files."""
    root, command_pages = described(tree, "svcctl"), list(_commands(tree, "svcctl"))
    made = {"svcctl": _root(root)}
    for noun, _ in root.commands:
        made[f"svcctl-{noun}"] = _noun([page for page in command_pages if page.path.split()[1] == noun])
    return {f"{name}.1": "\n".join(lines) + "\n" for name, lines in made.items()}


def _commands(group: Any, path: str) -> Iterator[Page]:
    """Yield the help pages of all commands in a group. The page of an inner group precedes its commands' pages."""
    for name, command in group.commands.items():
        if not command.hidden:
            yield described(command, f"{path} {name}")
            if hasattr(command, "commands"):
                yield from _commands(command, f"{path} {name}")


def _root(page: Page) -> Iterator[str]:
    yield from _begin("svcctl", page.title, page.usage)
    yield ".SH DESCRIPTION"
    yield from _about((page.about[0], page.ending))
    yield ".SH EXAMPLES"
    yield from _about(page.about[1:])
    yield from _listed("OPTIONS", [*(row for _, rows in page.options for row in rows), HELP])
    yield from _listed("COMMANDS", [(f"svcctl-{name}(1)", meaning) for name, meaning in page.commands])
    for title, topic in (("EXIT STATUS", "exit-codes"), ("ENVIRONMENT", "environment")):
        _, _, table = read(topic).partition("\n\n")
        yield f'.SH "{title}"'
        for block in table.split("\n\n"):
            yield from _literal(block, 0) if block.startswith(" ") else (".PP", _line(block))
    yield '.SH "SEE ALSO"'
    yield _line(", ".join(f"svcctl-{noun}(1)" for noun, _ in page.commands) + ";")
    yield _line("topics: " + ", ".join(f"'svcctl help {topic}'" for topic in TOPICS))


def _noun(command_pages: Sequence[Page]) -> Iterator[str]:
    first = command_pages[0]
    yield from _begin(first.path.replace(" ", "-"), first.title, first.usage)
    yield ".SH DESCRIPTION"
    yield from _about(first.about)
    for page in command_pages:
        if page is not first:
            yield f'.SH "{page.path.partition(" ")[2].upper()}"'
            yield from (".nf", _line(page.usage), ".fi", ".PP")
            yield from _about(page.about)
        yield from _options(page, page is first)
    yield '.SH "SEE ALSO"'
    yield _line("svcctl(1) has the global options (-p, -v, -q, --timeout, ...), the exit status and the environment.")


def _begin(name: str, title: str, usage: str) -> Iterator[str]:
    yield f'.TH "{name.upper()}" "1" "" "svcctl" "svcctl"'
    yield from (".ad l", ".nh")
    yield from (".SH NAME", _line(f"{name} - {title}"), ".SH SYNOPSIS", ".nf", _line(usage), ".fi")


def _about(paragraphs: Sequence[str]) -> Iterator[str]:
    for part in paragraphs:
        if part.startswith("\b"):
            yield from _literal(part.removeprefix("\b").strip("\n"), 2)
        else:
            yield from (".PP", _line(part))


def _literal(text: str, indent: int) -> Iterator[str]:
    """Yield the roff for lines that must not be wrapped.

    These lines have a smaller indent than usual, because lines of 80 columns would otherwise not fit on a terminal.
    """
    yield from (".PP", ".nf", f".in {indent}n", *map(_line, text.split("\n")), ".in", ".fi")


def _options(page: Page, is_first: bool) -> Iterator[str]:
    """Yield the arguments, and the options except --help. If the page groups the options, the headings are kept."""
    headed = len(page.options) > 1
    alone = page.arguments if headed else (*page.arguments, *page.options[0][1])
    if alone or headed:
        yield ".SH OPTIONS" if is_first else '.SS "Options"'
        yield from _definitions(alone)
    for title, rows in page.options if headed else ():
        if rows:
            yield f'.SS "{title}"'
            yield from _definitions(rows)


def _listed(title: str, rows: Sequence[Row]) -> Iterator[str]:
    yield f'.SH "{title}"'
    yield from _definitions(rows)


def _definitions(rows: Sequence[Row]) -> Iterator[str]:
    for name, meaning in rows:
        yield from (".TP", _line(name), _line(meaning))


ESCAPES = str.maketrans({"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"})
"""The escapes of characters that roff would replace. With the escapes, commands can be copied from a manual page."""


def _line(text: str) -> str:
    """Quote a text for roff, so that roff does not read any part of the text as a request or an escape."""
    return "\n".join(rf"\&{line}" if line.startswith(".") else line for line in text.translate(ESCAPES).split("\n"))
