"""Makes an events file with the first demo events, in a process of its own.

A process that makes a month of events takes about 50 MB for them, and keeps most of that memory until it ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.loading import demo


def make(path: Path, until: datetime, history: timedelta, report: Callable[[str, float], None]) -> None:
    """Make the events file with the demo tables up to `until` (aware), see `demo.extend`.

    `report` receives the name of a table and the fraction of its events that are done. The other process ends when
    `report` raises an error, and when this process ends. A failure of the other process is not reported: the caller
    extends the tables in any case, and that fails for the same reason.
    """
    arguments = [str(path), str(until.timestamp()), str(history.total_seconds())]
    with subprocess.Popen(
        [sys.executable, "-m", __name__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        try:
            for line in child.stdout or ():
                table, fraction = json.loads(line)
                report(table, fraction)
        finally:
            child.kill()


def main() -> None:
    """Make the events file of the arguments, and write a line of JSON about each step."""
    path, until, history = sys.argv[1:]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with DuckDBEngine(Path(path)) as engine:
        moment = datetime.fromtimestamp(float(until), UTC)
        for table, fraction, _ in demo.extend(engine, moment, timedelta(seconds=float(history))):
            print(json.dumps([table, fraction]), flush=True)


def _end_with_parent() -> None:
    """End this process when the parent closes its pipe or ends. Otherwise it would keep the events file locked."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
