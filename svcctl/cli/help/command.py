"""The help page of a command, read from the command tree. `--help` prints it, and manual pages contain it.

Typer makes the tree from an app. Only attributes that Click and Typer document are read. Pages are plain ASCII.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from svcctl.cli.help import PAGE_WIDTH

EVERYWHERE = "Global options (-p, -v, -q, --timeout) may stand anywhere: see 'svcctl --help'."
MIN_WIDTH = 20
_LITERAL = "\b"
"""If a paragraph of a help text begins with this character, the paragraph is not wrapped."""

MAX_LISTED_OPTIONS = 12
"""The maximum number of options in one list.

If a command has more options, they are listed under the headings that the parameter `rich_help_panel` gives.
"""

Row = tuple[str, str]
Section = tuple[str, tuple[Row, ...]]
"""A heading, and the rows under the heading."""
HELP: Row = ("-h, --help", "Show this page.")
"""The option --help, which is the last option on every help page."""


@dataclass(frozen=True, slots=True)
class Page:
    """The help page of a command, or of a group of commands."""

    path: str
    usage: str
    about: tuple[str, ...]
    """The paragraphs of the description. If a paragraph begins with a backspace, its lines are not wrapped."""
    arguments: tuple[Row, ...] = ()
    commands: tuple[Row, ...] = ()
    options: tuple[Section, ...] = ()
    """All options except `HELP`, which is added to the last section."""
    ending: str = ""

    @property
    def title(self) -> str:
        """The purpose of the command, in one line."""
        return " ".join(self.about[0].split()).rstrip(".")


def described(command: Any, path: str) -> Page:
    """Return the page of a command at a path such as `svcctl job list`."""
    parameters = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    arguments = [parameter for parameter in parameters if parameter.param_type_name == "argument"]
    options = [parameter for parameter in parameters if parameter.param_type_name == "option"]
    verbs = {name: verb for name, verb in getattr(command, "commands", {}).items() if not verb.hidden}
    words = [argument.metavar or argument.human_readable_name for argument in arguments]
    usage = [path, "[OPTIONS]", *(words or ["COMMAND [ARGS]..."] * hasattr(command, "commands"))]
    return Page(
        path=path,
        usage=_ascii(" ".join(usage)),
        about=tuple(_ascii(part) for part in (command.help or "").strip().split("\n\n") if part.strip()),
        arguments=tuple(
            (_ascii(argument.metavar or ""), _about(argument, argument.required))
            for argument in arguments
            if argument.help or argument.metavar
        ),
        commands=tuple((name, _summary(verb)) for name, verb in verbs.items()),
        options=_sections(options),
        ending=_ascii(command.epilog or EVERYWHERE),
    )


def _sections(options: Sequence[Any]) -> tuple[Section, ...]:
    """Return the options in the order of the signature. If there are many options, they are grouped by heading.

    Options without a heading come last.
    """
    headings = [(len(options) > MAX_LISTED_OPTIONS and option.rich_help_panel) or "" for option in options]
    rows = [(_names(option), _about(option, option.required)) for option in options]
    titles = [*dict.fromkeys(filter(None, headings)), ""]
    rest = "Other" if len(titles) > 1 else "Options"
    return tuple(
        (heading or rest, tuple(row for row, own in zip(rows, headings, strict=True) if own == heading))
        for heading in titles
    )


def _summary(command: Any) -> str:
    """Return the first paragraph of a command's help, as one line."""
    text = command.short_help or (command.help or "").strip().split("\n\n")[0]
    return _ascii(" ".join(text.split())).rstrip(".")


def _names(option: Any) -> str:
    """Return one text with the names of an option and the name of its value. The short name comes first."""
    names = sorted(option.opts, key=lambda name: name.startswith("--"))
    text = ", ".join(names)
    if option.secondary_opts:
        text += " / " + ", ".join(option.secondary_opts)
    return text if option.is_flag else _ascii(f"{text} {option.metavar or option.name.upper()}")


def _about(parameter: Any, required: bool) -> str:
    """Return the help of a parameter, with its default."""
    default = parameter.default
    extra = ""
    if required:
        extra = "[required]"
    elif isinstance(default, str | int | float) and not isinstance(default, bool) and default != "":
        extra = f"[default: {default:g}]" if isinstance(default, float) else f"[default: {default}]"
    return _ascii(" ".join(filter(None, (parameter.help or "", extra))))


def _ascii(text: str) -> str:
    return text.replace("\u2026", "...")


def text(page: Page, width: int = PAGE_WIDTH) -> str:
    """Return the page in lines of at most `width` characters, without a newline at the end."""
    width = max(width, MIN_WIDTH)
    about = [_paragraph(part, width) for part in page.about]
    lists = (("Arguments", page.arguments), ("Commands", page.commands))
    *headed, (rest, others) = page.options
    options = [*headed, (rest, (*others, HELP))]
    column = _column([row for _, rows in options for row in rows], width)
    sections = [
        *((title, rows, _column(rows, width)) for title, rows in lists if rows),
        *((title, rows, column) for title, rows in options),
    ]
    blocks = [
        "\n".join(_wrapped(page.usage, "Usage: ", " " * 7, width)),
        *about,
        *("\n".join([f"{title}:", *_definitions(rows, column, width)]) for title, rows, column in sections),
        "\n".join(_wrapped(page.ending, "", "", width)),
    ]
    return "\n\n".join(block for block in blocks if block)


def _paragraph(part: str, width: int) -> str:
    if part.startswith(_LITERAL):
        return "\n".join(f"  {line}".rstrip() for line in part.removeprefix(_LITERAL).strip("\n").split("\n"))
    return "\n".join(_wrapped(part, "  ", "  ", width))


def _column(rows: Sequence[Row], width: int) -> int:
    """Return the number of the column in which the descriptions of options or commands begin."""
    return min(max(len(name) for name, _ in rows), 30, width // 2 - 4) + 4


def _definitions(rows: Sequence[Row], column: int, width: int) -> list[str]:
    """Format names and their descriptions in two columns. A name that is too long for its column has its own line."""
    lines: list[str] = []
    for name, meaning in rows:
        begin = f"  {name}".ljust(column)
        if len(begin) > column:
            lines.append(begin)
            begin = " " * column
        lines.extend(_wrapped(meaning, begin, " " * column, width) or [begin.rstrip()])
    return lines


def _wrapped(text: str, first: str, other: str, width: int) -> list[str]:
    return wrap(
        " ".join(text.split()),
        width,
        initial_indent=first,
        subsequent_indent=other,
        break_on_hyphens=False,
        break_long_words=False,
    )
