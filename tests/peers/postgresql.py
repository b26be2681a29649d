"""A PostgreSQL server, on which each test gets its own database."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from peers.processes import HOST, Peer, Process, free_port, running

USER, PASSWORD = "svcctl", "s3cret/of@the%state"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgreSQLPeer(Peer):
    """A server whose only user needs a password over TCP."""

    port: int

    def fresh_database(self) -> str:
        """Create a database that no other test uses, and return its URL without a password."""
        name = f"state_{uuid.uuid4().hex[:12]}"
        with self.connection() as connection:
            connection.execute(f"create database {name}")
        return f"postgresql://{USER}@{HOST}:{self.port}/{name}"

    def fresh_schema(self) -> str:
        """Create a schema that no other test uses, and return its URL: this is much faster than a database."""
        name = f"state_{uuid.uuid4().hex[:12]}"
        with self.connection() as connection:
            connection.execute(f"create schema {name}")
        return f"postgresql://{USER}@{HOST}:{self.port}/postgres?options=-csearch_path%3D{name}"

    def connection(self, url: str | None = None) -> psycopg.Connection[tuple[object, ...]]:
        """A connection of the server's operator."""
        url = url or f"postgresql://{USER}@{HOST}:{self.port}/postgres"
        return psycopg.connect(url, password=PASSWORD, autocommit=True)


def programs() -> Path | None:
    """The directory of Debian's newest server, whose programs are not on PATH."""
    return max((path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")), default=None)


def _as_nobody() -> list[str]:
    """The beginning of a command that runs the server, as another user if this one is root: it refuses root."""
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.getuid() == 0 else []


@contextmanager
def postgresql(directory: Path, commands: Path) -> Iterator[PostgreSQLPeer]:
    """A server that keeps its data during a stop. A stop cuts all connections, like a crash."""
    port, data = free_port(), directory / "data"
    secret = directory / "password"
    secret.write_text(PASSWORD, encoding="utf-8")
    if os.getuid() == 0:
        for path in (directory, secret):
            os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
    as_nobody = _as_nobody()
    options = ("--auth=scram-sha-256", f"--username={USER}", f"--pwfile={secret}", "--no-sync", "--encoding=UTF8")
    made = subprocess.run(
        [*as_nobody, commands / "initdb", "-D", data, *options], cwd="/", capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    peer = PostgreSQLPeer(
        server=Process(
            name="postgresql",
            arguments=[
                *as_nobody,
                *("setpriv", "--pdeathsig", "KILL") * bool(as_nobody),  # a change of the user resets it
                *(commands / "postgres", "-D", data, "-p", str(port), "-k", directory, "-F"),
                *("-c", f"listen_addresses={HOST}"),
            ],
            directory=directory,
            ready=lambda: psycopg.connect(
                host=HOST, port=port, user=USER, password=PASSWORD, dbname="postgres", connect_timeout=2
            ).close(),
            not_yet=(psycopg.OperationalError,),
            stop_signal=signal.SIGINT,
        ),
        port=port,
    )
    with running(peer.server):
        yield peer
