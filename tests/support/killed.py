"""Opens the state of new services in processes that are killed, each STATEMENTS statements later than the one before.

    python killed.py DIRECTORY STATEMENTS [URL…]

The last process ends by itself. Then each state is opened again. The program prints how many processes were killed, and
the contents of the states without secrets, once if all are the same. URLs name PostgreSQL databases, one for each
process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event, select

from svcctl.service.accounts.seed import open_store
from svcctl.service.process import ServiceFiles, all_credentials
from svcctl.service.state import schema
from svcctl.service.state.store import Store

SECRETS = {"api_key", "api_secret", "token"}


def contents(store: Store, files: ServiceFiles) -> dict[str, list[Any]]:
    """The rows of every table; an account is replaced by the name of the built-in profile that uses it."""
    keys = [fields["api_key"] for fields in all_credentials(files)]
    found: dict[str, list[Any]] = {}
    with store.reading() as connection:
        for table in schema.metadata.sorted_tables:
            rows = [dict(row) for row in connection.execute(select(table)).mappings()]
            if table is schema.accounts:
                rows = [{"profile": keys.index(row["api_key"])} | row | without_place(row, files) for row in rows]
            if table is schema.events_files:  # the rest is another for each file
                rows = [{"tables": sorted(row["tables"]), "loss": row["loss"]} for row in rows]
            found[table.name] = sorted(
                ({key: value for key, value in row.items() if key not in SECRETS} for row in rows), key=str
            )
    return found


def without_place(account: dict[str, Any], files: ServiceFiles) -> dict[str, Any]:
    """The name and the date of an account, without what differs between directories and moments."""
    return {"name": account["name"].replace(str(files.directory), "DIRECTORY"), "created": account["created"] > 0}


def opened(files: ServiceFiles, url: str | None) -> dict[str, list[Any]]:
    with closing(open_store(files, os.environ, state=url)) as store:
        return contents(store, files)


def is_killed(files: ServiceFiles, url: str | None, after: int) -> bool:
    """Open the state in another process and kill it after `after` statements. Returns whether it sent as many."""
    if (child := os.fork()) == 0:
        left = count(after, -1)

        @event.listens_for(Engine, "after_cursor_execute")
        def executed(*_: object) -> None:
            if next(left) == 1:
                os.kill(os.getpid(), signal.SIGKILL)

        opened(files, url)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def main(directory: Path, step: int, urls: list[str]) -> None:
    outcomes, kills, killed = set(), 0, True
    while killed:
        files, url = ServiceFiles(directory / str(kills)), urls[kills] if urls else None
        killed = is_killed(files, url, 1 + kills * step)
        outcomes.add(json.dumps(opened(files, url), sort_keys=True))
        kills += killed
    print(json.dumps({"kills": kills, "outcomes": [json.loads(outcome) for outcome in outcomes]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
