"""Makes the events file of a new service, with the first demo events, in a separate process.

Making a month of events takes about 50 MB of memory. A process keeps most of this memory until it ends.
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
    """Start a process that makes the events file with the demo events, and wait until the process ends.

    The first demo events are `history` earlier than `until`, which has a time zone. `report` receives the name of a
    table and the fraction of the table's events that are done. If `report` raises an error or this process ends, the
    other process is stopped. If the other process fails, no error is raised. So the caller must call `demo.extend`
    afterwards, which makes the missing events or raises the error.
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
    """Make the events file. After each transaction, print a line of JSON with the progress.

    The arguments of the process are the path of the file, and `until` and `history` in seconds.
    """
    path, until, history = sys.argv[1:]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with DuckDBEngine(Path(path)) as engine:
        moment = datetime.fromtimestamp(float(until), UTC)
        for table, fraction, _ in demo.extend(engine, moment, timedelta(seconds=float(history))):
            print(json.dumps([table, fraction]), flush=True)


def _end_with_parent() -> None:
    """End this process when the parent process closes the pipe or ends.

    Otherwise, this process would keep the events file locked.
    """
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
