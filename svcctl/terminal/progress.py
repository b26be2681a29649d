"""The progress line on a terminal: a bar or a spinner, the remaining time, and a text from the command.

The library rich draws the line. Rich loads slowly, so this module is imported only to draw. All text for rich has
passed the function `visible`, and is never markup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TextIO

from rich.console import RenderableType
from rich.progress import Progress
from rich.progress_bar import ProgressBar
from rich.segment import Segment, Segments
from rich.spinner import Spinner
from rich.table import Column, Table
from rich.text import Text

from svcctl.dates.lengths import rough_text
from svcctl.terminal.escapes import Styled, visible
from svcctl.terminal.screen import Write, console_on

SPEED_SECONDS = 300.0
"""The number of recent seconds from which the speed of a task is computed. The speed gives the remaining time."""


class Display(Progress):
    """A line that shows the progress of a task until `stop` is called.

    The line has a bar, or a spinner if the total is not known. `tell` returns a text, the amount that is done, and the
    total. `write` writes to `stream`, which is a terminal.
    """

    def __init__(
        self, write: Write, stream: TextIO, tell: Callable[[], tuple[str, float, float | None]], *, color: bool
    ) -> None:
        self._tell = tell
        self._spinner = Spinner("line")
        super().__init__(
            console=console_on(write, stream, color=color),
            speed_estimate_period=SPEED_SECONDS,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self.add_task("", total=None)
        self.start()

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            (words, done, total), width = self._tell(), self.console.width // 4
            self.update(task.id, completed=done, total=total)
            time_left = f"{rough_text(task.time_remaining)} left, " if task.time_remaining else ""
            bar = ProgressBar(task.total, task.completed, width, complete_style="green", finished_style="green")
            line = Table.grid(Column(no_wrap=True), Column(no_wrap=True), Column(), padding=(0, 1, 0, 0))
            text = Text(visible(f"{time_left}{words}"), no_wrap=True, overflow="crop")
            line.add_row("svcctl:", self._spinner if total is None else bar, text)
            yield line

    def above(self, text: Styled) -> None:
        """Write lines above the progress line. The progress line stays."""
        self.console.print(Segments([Segment(text)]), crop=False, end="")
