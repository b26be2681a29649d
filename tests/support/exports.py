"""Exports in tests: of a table of known events, through a proxy that may break answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from support.faults import FaultyProxy
from support.shells import Shell
from svcctl.api.auth import Signature
from svcctl.api.client import Client
from svcctl.exports.export import Export, Order, Summary
from svcctl.exports.plan import plan
from svcctl.exports.run import ExportRun, opened
from svcctl.exports.workers.dispatch import Crew
from svcctl.exports.workers.fetch import Progress, fetch
from svcctl.exports.workers.pace import Pace
from svcctl.io.files import PART_SUFFIX

START = 1_706_659_200
"""2024-01-31, the day of the events, in epoch seconds."""
WINDOW = 600
WINDOWS = 6


def load_events(service: Shell) -> None:
    """Load the table exported.events: 500 events in the first hour of the day, but none in minutes 20 to 30."""
    lines = []
    for number in range(600):
        second = number * 6
        if 1200 <= second < 1800:
            continue
        row = {
            "eventdate": f"2024-01-31 {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{number % 1000:03}",
            "n": number * 9_007_199_254_740_993 % 2**62,
            "name": ["plain", 'a "quote", a comma', "two\nlines", "漢字 \u2028 😀", ""][number % 5],
            "x": None if number % 7 == 0 else number / 8,
            "ok": number % 3 == 0,
        }
        lines.append(json.dumps(row))
    file = service.home / "exported.ndjson"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    loaded = service("service", "load", str(file), "--table", "exported.events")
    assert loaded.returncode == 0, loaded.stderr


@dataclass
class Exports:
    """Runs exports of the loaded events through a proxy into `root`, which is `folder` or a URL of a server."""

    proxy: FaultyProxy
    folder: Path
    signature: Signature
    root: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    timeout: float = 60.0
    url: str = ""
    """The URL of a service to use instead of the proxy; empty for the proxy."""
    changes: list[tuple[str, str]] = field(default_factory=list)
    """The columns before and after each change of columns that the last run reported."""

    def order(self, name: str, **changes: Any) -> Order:
        target = f"{self.root or self.folder}/{name}"
        end = START + WINDOW * WINDOWS
        order = Order("from exported.events", target, START, end, WINDOW, "https://events.example.com", retries=0)
        return replace(order, **changes)

    def export(self, name: str, **changes: Any) -> Export:
        return plan(self.order(name, **changes), self.environment)

    def __call__(self, name: str, *, workers: int = 3, stops: bool = True, **changes: Any) -> Summary:
        """Run an export; `changes` replace fields of its Order."""
        return self.run(self.export(name, **changes), workers=workers, stops=stops)

    def run(
        self,
        export: Export,
        *,
        workers: int = 3,
        stops: bool = True,
        stopping: threading.Event | None = None,
    ) -> Summary:
        stopping = stopping or threading.Event()
        self.progress = Progress()
        with (
            Client(self.url or self.proxy.url, self.signature, retries=0, timeout=self.timeout) as client,
            ThreadPoolExecutor(workers) as pool,
        ):
            work = partial(
                fetch,
                client=client,
                storage=export.storage,
                pace=Pace(),
                progress=self.progress,
                stopping=stopping,
                delay=lambda failures: 0.0,
            )
            if not export.windows:
                return Summary(0, 0, 0, 0, (), export.whole.end)
            crew = Crew(work, pool, workers, stopping)
            with opened(export) as record:
                self.changes = record.column_changes
                return ExportRun(record, crew, lambda windows, of, fetched: None, stops=stops)()

    def alone(self, name: str, **changes: Any) -> None:
        """Make the files of windows with a request for each window, without a record."""
        export = self.export(name, **changes)
        with Client(self.url or self.proxy.url, self.signature, retries=0, timeout=self.timeout) as client:
            for task in export.tasks().values():
                fetch(task, client, export.storage, Pace(), Progress(), threading.Event())

    def windows_asked(self) -> int:
        return self.proxy.asked.total()


def left(folder: Path) -> list[str]:
    """The names of the files in a folder, without hidden ones."""
    paths = (path.relative_to(folder) for path in folder.rglob("*"))
    return sorted(path.as_posix() for path in paths if not any(part.startswith(".") for part in path.parts))


def contents(folder: Path) -> dict[str, bytes]:
    """The contents of the complete files in a folder."""
    names = (name for name in left(folder) if (folder / name).is_file())
    return {name: (folder / name).read_bytes() for name in names if not name.endswith(PART_SUFFIX)}
