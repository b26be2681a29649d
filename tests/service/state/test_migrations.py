"""Files of the state from newer versions, upgrades to the next version, and upgrades that are killed."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from svcctl import __version__
from svcctl.errors import UsageError
from svcctl.service.queries import saved_queries
from svcctl.service.queries.saved_queries import SavedQuery
from svcctl.service.state import migrations
from svcctl.service.state.store import Store

COPY = "state.db.before-0005"
NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.rename_table("queries", "unnumbered")
    op.create_table(
        "queries",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("number", sa.Integer),
        sqlite_strict=True,
    )
    op.execute("insert into queries select id, text, rowid from unnumbered")
    op.drop_table("unnumbered")
"""
"""A script of the next version, which makes a table anew."""
Rows = list[tuple[Any, ...]]


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """The scripts of the next svcctl."""
    scripts = tmp_path / "later"
    shutil.copytree(migrations.SCRIPTS, scripts)
    (scripts / "versions" / "v0005_queries_are_numbered.py").write_text(NEXT)
    return scripts


def rows(file: Path) -> Rows:
    """The saved queries of a file of either version."""
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        return connection.execute("select id, text from queries order by id").fetchall()


def version_of(file: Path) -> str:
    with closing(sqlite3.connect(file)) as connection:
        [(version,)] = connection.execute("select version_num from alembic_version").fetchall()
        return str(version)


def first(directory: Path) -> Path:
    """A file of the first version with two saved queries, whose log a service that ended has merged."""
    directory.mkdir(exist_ok=True)
    file = directory / "state.db"
    with closing(Store(file)) as store:
        saved_queries.put(store, SavedQuery("large", "from shop.orders where amount > 100"))
        saved_queries.put(store, SavedQuery("names", "from shop.orders select customer"))
    return file


def structure(file: Path) -> dict[str, Any]:
    """Tables, columns, references and indexes; that a key is not null needs no saying in a strict table."""
    with closing(sqlite3.connect(file)) as connection:

        def ask(pragma: str, of: str) -> list[tuple[Any, ...]]:
            return connection.execute(f"select * from pragma_{pragma}(?)", (of,)).fetchall()

        def key(table: str) -> list[str]:
            return [row[1] for row in sorted(ask("table_info", table), key=lambda row: row[5]) if row[5]]

        return {
            table: {
                "strict": strict,
                "columns": [
                    (column, type, bool(required or place), default, place)
                    for _, column, type, required, default, place in ask("table_info", table)
                ],
                "references": sorted(
                    (other, column, target or key(other)[place], deleting)
                    for _, place, other, column, target, _, deleting, _ in ask("foreign_key_list", table)
                ),
                "indexes": sorted(
                    (name if made == "c" else "", unique, partial, [row[2] for row in ask("index_info", name)])
                    for _, name, unique, made, partial in ask("index_list", table)
                ),
            }
            for _, table, _, _, _, strict in connection.execute("pragma table_list").fetchall()
            if not table.startswith("sqlite_") and table != "alembic_version"
        }


def opened(file: Path, scripts: Path = migrations.SCRIPTS) -> None:
    Store(file, scripts=scripts).close()


def test_the_scripts_make_the_tables_of_a_new_file(tmp_path: Path) -> None:
    by_scripts, new = tmp_path / "scripts.db", tmp_path / "new.db"
    with create_engine(f"sqlite:///{by_scripts}").begin() as connection:
        migrations.upgrade(connection, migrations.SCRIPTS)
    opened(new)
    assert structure(by_scripts) == structure(new) != {}
    assert version_of(by_scripts) == version_of(new) == "0004"


def test_the_scripts_lead_to_the_version_that_this_svcctl_reads() -> None:
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(migrations.SCRIPTS))
    numbers = [script.revision for script in scripts.walk_revisions()]
    assert numbers == [f"{number:04}" for number in range(len(numbers), 0, -1)]
    assert scripts.get_heads() == [migrations.newest(migrations.SCRIPTS)]


def test_an_upgrade_keeps_a_copy_and_happens_once(tmp_path: Path, later: Path) -> None:
    file = first(tmp_path)
    old = rows(file)
    opened(file, later)
    assert (version_of(file), rows(file)) == ("0005", old)
    copy = tmp_path / COPY
    assert (version_of(copy), rows(copy)) == ("0004", old)
    assert oct(copy.stat().st_mode & 0o777) == "0o600"
    copy.unlink()
    opened(file, later)
    assert not copy.exists()


def test_the_copy_has_what_a_crash_left_in_the_log_of_the_file(tmp_path: Path, later: Path) -> None:
    file = first(tmp_path / "running")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("insert into queries values ('last', 'from t')")
        connection.commit()
        crashed = tmp_path / "crashed"
        crashed.mkdir()
        for name in ("state.db", "state.db-wal"):
            (crashed / name).write_bytes((tmp_path / "running" / name).read_bytes())
    opened(crashed / "state.db", later)
    assert ("last", "from t") in rows(crashed / "state.db")
    assert ("last", "from t") in rows(crashed / COPY)


def test_a_file_of_a_newer_svcctl_is_refused_and_left_alone(tmp_path: Path, later: Path) -> None:
    file = first(tmp_path)
    opened(file, later)
    before = file.read_bytes()
    with pytest.raises(UsageError) as caught:
        Store(file)
    assert (caught.value.message, caught.value.reason) == (
        f"state file {file} has version 5, and svcctl {__version__} reads versions up to 4",
        "newer-version",
    )
    assert file.read_bytes() == before


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("create table accounts (api_key text primary key) strict")
    with pytest.raises(UsageError) as caught:
        Store(file)
    assert (caught.value.message, caught.value.hint) == (
        f"the state file {file} has tables of other programs",
        "move it away to start with an empty one",
    )
    assert list(structure(file)) == ["accounts"]


def test_a_reason_against_an_upgrade_leaves_the_file_alone(tmp_path: Path, later: Path) -> None:
    def refuse() -> None:
        raise UsageError("not now")

    file = first(tmp_path)
    before = file.read_bytes()
    with pytest.raises(UsageError, match=r"^not now$"):
        Store(file, before_upgrade=refuse, scripts=later)
    assert file.read_bytes() == before
    assert not (tmp_path / COPY).exists()
    opened(file, later)
    Store(file, before_upgrade=refuse, scripts=later).close()


def test_two_that_open_an_old_file_at_once_upgrade_it_once(tmp_path: Path, later: Path) -> None:
    file = first(tmp_path)
    old = rows(file)
    upgrades: list[str] = []
    barrier = threading.Barrier(2)

    def work(name: str) -> None:
        barrier.wait()
        Store(file, before_upgrade=lambda: upgrades.append(name), scripts=later).close()

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(upgrades) == 1
    assert rows(file) == old


# Upgrades that are killed

KILLED = """
import os, random, signal, sys
from pathlib import Path
from sqlalchemy import event
from sqlalchemy.engine import Engine
import alembic.command, alembic.config, alembic.ddl.sqlite, svcctl.service.state.schema
from svcctl.service.state.store import Store

scripts, *directories = map(Path, sys.argv[2:])


def at_step(last, directory):
    "Dies before step `last`: a statement, a commit, or something done to a file in the directory."
    steps = 0
    def step(*what):
        nonlocal steps
        steps += 1
        if steps > last:
            os.write(1, " ".join(map(str, what)).encode() + b"\\n")
            os.kill(os.getpid(), signal.SIGKILL)
    def audited(name, arguments):
        if name in ("open", "os.rename", "os.remove") and str(arguments[0]).startswith(str(directory)):
            step(name, Path(str(arguments[0])).name or directory.name)
    sys.addaudithook(audited)
    event.listen(Engine, "before_cursor_execute", lambda c, u, statement, *_: step(*statement.split()[:3]))
    event.listen(Engine, "commit", lambda _: step("commit"))


def at_a_moment(number, directory):
    moment = random.Random(number).uniform(0.0005, 0.08)
    signal.setitimer(signal.ITIMER_REAL, moment)  # SIGALRM ends a process as SIGKILL does


for number, directory in enumerate(directories):
    child = os.fork()
    if not child:
        globals()[sys.argv[1]](number, directory)
        Store(directory / "state.db", scripts=scripts)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0 and sys.argv[1] == "at_step":
        break
"""


def killed(way: str, scripts: Path, directories: list[Path]) -> list[str]:
    """Upgrades the file in each directory and is killed over it; what was about to be done then."""
    for directory in directories:
        first(directory)
    script = [sys.executable, "-c", KILLED, way, str(scripts), *map(str, directories)]
    done = subprocess.run(script, capture_output=True, text=True, check=True, timeout=100)
    return done.stdout.splitlines()


def check_after_death(directory: Path, scripts: Path, old: Rows) -> None:
    """The file opens at the next version with all it held, and the copy, once it has its name, is whole."""
    copy = directory / COPY
    if copy.exists():
        assert rows(copy) == old
    opened(directory / "state.db", scripts)
    assert rows(directory / "state.db") == old
    assert rows(copy) == old


@pytest.mark.slow
def test_an_upgrade_that_is_killed_before_any_of_its_steps_leaves_a_file_that_opens(
    tmp_path: Path, later: Path
) -> None:
    old = rows(first(tmp_path))
    directories = [tmp_path / f"{number}" for number in range(60)]
    steps = killed("at_step", later, directories)
    assert len(steps) < 60  # the last one came to its end
    assert {
        "begin",
        "begin immediate",
        f"open {COPY}.part",
        f"os.rename {COPY}.part",
        "ALTER TABLE queries",
        "insert into queries",
        "DROP TABLE unnumbered",
        "UPDATE alembic_version SET",
        "commit",
    } <= set(steps)
    for directory in directories[: len(steps) + 1]:
        check_after_death(directory, later, old)


@pytest.mark.slow
def test_an_upgrade_that_is_killed_at_any_moment_leaves_a_file_that_opens(tmp_path: Path, later: Path) -> None:
    old = rows(first(tmp_path))
    directories = [tmp_path / f"{number}" for number in range(30)]
    killed("at_a_moment", later, directories)
    for directory in directories:
        check_after_death(directory, later, old)


WITHOUT = {
    "0003": "drop table job_steps; drop table job_files;"
    "alter table jobs drop column verified; alter table jobs drop column kept_from;",
    "0002": "".join(
        f"alter table accounts drop column {name};" for name in ("name", "created", "expires", "last_used")
    ),
    "0001": "drop table events_files; alter table jobs drop column accepted;",
}
"""What makes the tables of a version from those of the version after it."""


@pytest.mark.parametrize("version", WITHOUT)
def test_a_file_of_an_older_version_is_upgraded_and_keeps_its_keys(tmp_path: Path, version: str) -> None:
    old, new = first(tmp_path / "old"), first(tmp_path / "new")
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("insert into accounts (api_key, api_secret) values ('key', 'secret')")
        connection.commit()
        connection.executescript(
            "".join(script for number, script in WITHOUT.items() if number >= version)
            + f"update alembic_version set version_num = '{version}'"
        )
    Store(old).close()
    assert structure(old) == structure(new)
    with closing(sqlite3.connect(old)) as connection:
        columns = "api_key, api_secret, name, created, expires, last_used"
        assert connection.execute(f"select {columns} from accounts").fetchall() == [
            ("key", "secret", None, None, None, None)
        ]
