"""Draws .assets/terminal.svg, the picture of the README: commands, and what they print on a terminal.

    PYTHONPATH=tests .venv/bin/python -m support.picture

The commands run in a new home, on a local service with demo events up to that second.
"""

from __future__ import annotations

import io
import shlex
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.text import Text

from support import ROOT
from support.pseudo_terminal import on_terminal_of, screen
from support.shells import Shell

PICTURE = ROOT / ".assets" / "terminal.svg"
WIDTH = 92
"""Columns of the terminal."""
COMMANDS = (
    "svcctl query 'from demo.ecommerce.data group every 30m select count()' --from 1d --chart",
    "svcctl query 'from auth.all where result = \"FAIL\"' --from 1d --limit 5",
)

CELL_WIDTH, LINE_HEIGHT = 12.2, 24.4
"""Pixels between the letters of a line, and between lines, in a drawing by rich."""
SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""A drawing as rich fills it in, with fonts that the reader has: rich's own template loads one from the network."""


def runs(shell: Shell) -> Iterator[tuple[str, str]]:
    """Each command with what it leaves on a terminal, with its styles; a failure is an error."""
    for command in COMMANDS:
        seen = on_terminal_of(WIDTH, shell, *shlex.split(command)[1:])
        if seen.code != 0:
            raise RuntimeError(f"exit code {seen.code} of {command}\n{seen.text}")
        yield command, screen(seen.text, styles=True)


def drawing(runs: Iterable[tuple[str, str]]) -> str:
    """The runs as they stand on the screen, one below the other, as SVG."""
    console = Console(file=io.StringIO(), record=True, width=WIDTH)
    for command, printed in runs:
        console.print(Text(f"$ {command}", style="bold"), soft_wrap=True)
        console.print(Text.from_ansi(printed.rstrip("\n")), "\n", sep="", soft_wrap=True)
    return console.export_svg(title="", code_format=SVG, unique_id="terminal")


def lines(svg: str) -> list[str]:
    """What is written in a drawing, as the lines of the screen."""
    screen: dict[int, str] = {}
    for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        row, column = (round(float(text.attrib[at]) / size) for at, size in (("y", LINE_HEIGHT), ("x", CELL_WIDTH)))
        screen[row] = screen.get(row, "").ljust(column) + (text.text or "").replace("\N{NO-BREAK SPACE}", " ")
    return [screen.get(row, "").rstrip() for row in range(min(screen), max(screen) + 1)]


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        shell = Shell(Path(home), {"SVCCTL_DEMO": "2d"})
        try:
            if (started := shell("service", "start")).returncode != 0:
                raise RuntimeError(started.stderr)
            svg = drawing(runs(shell))
        finally:
            shell("service", "stop")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
