"""Files of the state from older versions, newer ones, and upgrades that are killed; on a real file of an old svcctl."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.unversioned import unpack

from svcctl import __version__
from svcctl.api.models import JobStatus
from svcctl.errors import UsageError
from svcctl.service.accounts import accounts, domains, offers, roles
from svcctl.service.accounts.accounts import Account, Owner
from svcctl.service.accounts.domains import Member
from svcctl.service.accounts.offers import PricePlan, Reseller
from svcctl.service.jobs import stored
from svcctl.service.jobs.stored import StoredJob
from svcctl.service.queries import saved
from svcctl.service.queries.saved import SavedQuery
from svcctl.service.state import migrations
from svcctl.service.state.store import Store

COPY = f"state.db.before-{migrations.VERSION}"
Rows = dict[str, list[tuple[Any, ...]]]


@cache
def first_columns() -> dict[str, list[str]]:
    """The tables and columns of an unversioned file, which every version since has too."""
    columns: dict[str, list[str]] = {}
    with TemporaryDirectory() as directory, closing(sqlite3.connect(unpack(Path(directory)))) as connection:
        for table, column in connection.execute(
            "select tables.name, columns.name from sqlite_schema as tables, pragma_table_info(tables.name) as columns"
            " where tables.type = 'table'"
        ):
            columns.setdefault(table, []).append(column)
    return columns


SINCE = {
    "accounts.domain": "coalesce((select name from domains where id = accounts.domain), '')",
    "jobs.owner": "coalesce((select name from domains where id = jobs.domain), '@' || jobs.reseller)",
}
"""Columns of an unversioned file that later versions have in other columns."""


def rows(file: Path) -> Rows:
    """All that an unversioned file holds; the rowid first, which is a job's number in later versions."""
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert connection.execute("pragma foreign_key_check").fetchall() == []
        later = bool(connection.execute("select 1 from pragma_table_info('jobs') where name = 'domain'").fetchall())
        found = {}
        for table, names in first_columns().items():
            columns = ", ".join(SINCE.get(f"{table}.{name}", name) if later else name for name in names)
            place = "rowid" if table != "accounts" else "0"  # their table is made anew, in the order of their keys
            found[table] = connection.execute(f"select {place}, {columns} from {table} order by 1, 2").fetchall()
        return found


def running(store: Store) -> list[StoredJob]:
    return [job for job in stored.every(store) if job.status is JobStatus.RUNNING]


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


def opened(file: Path) -> None:
    Store(file).close()


def test_what_an_unversioned_file_held_is_all_there(tmp_path: Path) -> None:
    store = Store(unpack(tmp_path))
    assert [(one.domain, one.reseller, one.administrator) for one in accounts.every(store)] == [
        ("", "demo", False),
        ("acme@demo", None, True),
        ("local", None, True),
    ]
    assert accounts.with_key(store, "4ec1c7d95c5f55b5ddad372aefd2574c") == Account(
        "4ec1c7d95c5f55b5ddad372aefd2574c",
        "a6343e8c5c0bc0b71c0dd871a330ca70e654e88a277c14eaa0ba75f0e60db308",
        "eZkolszkKgkgUXBTjqngTIvqwspAdRhPRFrGEvXEMMo",
        "acme@demo",
        administrator=True,
        domain_id=2,
    )
    assert offers.resellers(store) == [Reseller("demo"), Reseller("west", include_all_available_apps=False)]
    assert [plan for plan in offers.plans(store) if plan.name in ("big", "small", "basic")] == [
        PricePlan("demo", "basic", 30.0, 10.0, ("Alerts", "Lookups"), ("dashboards",)),
        PricePlan("demo", "small", None, None, ("Alerts",), ()),
        PricePlan("west", "big", 7.5, None, ("Sorting",), ("maps",)),
    ]
    assert [(domain.to_json(), users) for domain, users in domains.every(store)] == [
        (
            {"name": "acme@demo", "plan": "basic", "time": 20.0, "volume": 10.0, "status": "Active"},
            [Member("ann@acme.example", "ADMIN", True, False), Member("bob@acme.example", "USER", False, True)],
        ),
        (
            {"name": "beta@demo", "plan": "full", "time": 365.0, "volume": 1000.0, "status": "Disabled"},
            [Member("ann@acme.example", "ADMIN", True, False)],
        ),
        ({"name": "late@demo", "plan": "trial", "status": "Pending"}, []),
        ({"name": "local", "status": "Active"}, [Member("owner@localhost", "ADMIN", True, True)]),
    ]
    owner = Account("", "", None, "", reseller="demo")
    assert [role.to_json() for role in roles.listed(store, owner, "acme")] == [
        {
            "name": "everything",
            "policies": "*",
            "applications": "*",
            "resourceIds": {"*": []},
            "alertPermissions": [],
            "defVault": 1,
            "maxVault": 1,
        },
        {
            "name": "night-shift",
            "description": "Watches at night",
            "policies": ["Search", "Alerts"],
            "applications": ["explorer"],
            "resourceIds": {"ids": [1]},
            "defaultApplicationName": "explorer",
            "alertPermissions": [],
            "defVault": 1,
            "maxVault": 1,
        },
    ]
    assert saved.listed(store) == [
        SavedQuery("large", "from shop.orders where amount > 100"),
        SavedQuery("names", "from shop.orders select customer, amount"),
    ]
    assert [
        (job.friendly_name, str(job.status), job.sent, job.error) for job in stored.owned(store, Owner(domain=1))
    ] == [
        ("failed", "STOPPED", 3, ("no table 'shop.closed'",)),
        ("complete", "COMPLETED", 500, ()),
        ("limited", "COMPLETED", 50, ()),
        ("stopped", "STOPPED", 600, ()),
        ("running", "RUNNING", 588, ()),
        ("hourly", "RUNNING", 27, ()),
    ]
    assert [dict(job.params) for job in running(store)] == [
        {"note": "hush", "friendlyName": "running"},
        {"friendlyName": "hourly"},
    ]
    store.close()


def test_the_jobs_and_keys_of_a_deleted_domain_are_not_those_of_the_next_of_its_name(tmp_path: Path) -> None:
    file = unpack(tmp_path)
    with closing(sqlite3.connect(file)) as connection:
        [(deleted,)] = connection.execute("select deleted_at from domains where name = 'gone@demo'").fetchall()
        connection.execute("insert into domains values (9, 'gone@demo', 'demo', 'trial', null, null, 'Active', null)")
        connection.execute("insert into accounts values ('nobodys', 's', null, 'never@demo', 0, null)")
        for job, owner, launched in (
            ("before", "gone@demo", deleted - 1),
            ("after", "gone@demo", deleted + 1),
            ("reseller's", "@demo", 1),
            ("nobody's", "never@demo", 1),
        ):
            connection.execute(
                "insert into jobs (id, owner, status, type, friendly_name, query, request, params)"
                " values (?, ?, 'RUNNING', 'donothing', 'name', 'from t', json_object('launched', ?), '{}')",
                (job, owner, launched),
            )
        connection.commit()
    store = Store(file)
    assert [job.id for job in stored.owned(store, Owner(domain=9))] == ["after"]
    assert [job.id for job in stored.owned(store, Owner(reseller="demo"))] == ["reseller's"]
    assert len(running(store)) == 4
    assert accounts.with_key(store, "nobodys") is None
    store.close()


def test_an_upgrade_keeps_a_copy_and_happens_once(tmp_path: Path) -> None:
    file = unpack(tmp_path)
    before, old = file.read_bytes(), rows(file)
    opened(file)
    assert rows(file) == old
    copy = tmp_path / COPY
    assert copy.read_bytes() == before
    assert oct(copy.stat().st_mode & 0o777) == "0o600"
    copy.unlink()
    opened(file)
    assert not copy.exists()


def test_the_copy_has_what_a_crash_left_in_the_log_of_the_file(tmp_path: Path) -> None:
    file = unpack(tmp_path / "running")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("insert into queries values ('last', 'from t')")
        connection.commit()
        crashed = tmp_path / "crashed"
        crashed.mkdir()
        for name in ("state.db", "state.db-wal"):
            (crashed / name).write_bytes((tmp_path / "running" / name).read_bytes())
    opened(crashed / "state.db")
    assert (3, "last", "from t") in rows(crashed / "state.db")["queries"]
    assert (3, "last", "from t") in rows(crashed / COPY)["queries"]


def test_an_upgraded_file_has_the_tables_of_a_new_one(tmp_path: Path) -> None:
    old, new = unpack(tmp_path), tmp_path / "new.db"
    opened(old)
    opened(new)
    assert structure(old) == structure(new)


def test_the_scripts_lead_to_the_version_that_this_svcctl_reads() -> None:
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    numbers = [script.revision for script in scripts.walk_revisions()]
    assert numbers == [f"{number:04}" for number in range(len(numbers), 0, -1)]
    assert scripts.get_heads() == [migrations.VERSION]


def test_a_first_start_that_was_cut_short_is_made_whole(tmp_path: Path) -> None:
    file, new = tmp_path / "state.db", tmp_path / "new.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "create table accounts (api_key text primary key, api_secret text not null, token text unique,"
            " domain text not null, administrator integer not null default 0, reseller text) strict"
        )
    opened(file)
    opened(new)
    assert structure(file) == structure(new)


def test_a_file_of_a_newer_svcctl_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    opened(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("update alembic_version set version_num = '0999'")
        connection.commit()
    before = rows(file)
    with pytest.raises(UsageError) as caught:
        Store(file)
    assert (caught.value.message, caught.value.hint) == (
        f"state file {file} has version 999, and svcctl {__version__} reads versions up to {int(migrations.VERSION)}",
        "install a newer svcctl: pip install --upgrade 'svcctl[service]'",
    )
    assert rows(file) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.db"]


def test_a_reason_against_an_upgrade_leaves_the_file_alone(tmp_path: Path) -> None:
    def refuse() -> None:
        raise UsageError("not now")

    file = unpack(tmp_path)
    before = rows(file)
    with pytest.raises(UsageError, match=r"^not now$"):
        Store(file, before_upgrade=refuse)
    assert rows(file) == before
    assert not (tmp_path / COPY).exists()
    Store(file).close()
    Store(file, before_upgrade=refuse).close()


def test_two_that_open_an_old_file_at_once_upgrade_it_once(tmp_path: Path) -> None:
    file = unpack(tmp_path)
    old = rows(file)
    upgrades: list[str] = []
    barrier = threading.Barrier(2)

    def work(name: str) -> None:
        barrier.wait()
        Store(file, before_upgrade=lambda: upgrades.append(name)).close()

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

directories = [Path(name) for name in sys.argv[2:]]


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


def at_a_moment(_, directory):
    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, 0.08))  # SIGALRM ends a process as SIGKILL does


for number, directory in enumerate(directories):
    child = os.fork()
    if not child:
        globals()[sys.argv[1]](number, directory)
        Store(directory / "state.db")
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0 and sys.argv[1] == "at_step":
        break
"""


def killed(way: str, directories: list[Path]) -> list[str]:
    """Upgrades the file in each directory and is killed over it; what was about to be done then."""
    for directory in directories:
        unpack(directory)
    script = [sys.executable, "-c", KILLED, way, *map(str, directories)]
    done = subprocess.run(script, capture_output=True, text=True, check=True, timeout=100)
    return done.stdout.splitlines()


def check_after_death(directory: Path, old: Rows) -> None:
    """The file opens at this version with all it held, and the copy, once it has its name, is whole."""
    copy = directory / COPY
    if copy.exists():
        assert rows(copy) == old
    opened(directory / "state.db")
    assert rows(directory / "state.db") == old
    assert rows(copy) == old


@pytest.mark.slow
def test_an_upgrade_that_is_killed_before_any_of_its_steps_leaves_a_file_that_opens(tmp_path: Path) -> None:
    old = rows(unpack(tmp_path))
    directories = [tmp_path / f"{number}" for number in range(100)]
    steps = killed("at_step", directories)
    assert 50 < len(steps) < 100  # the last one came to its end
    assert {
        "begin",
        "begin immediate",
        f"open {COPY}.part",
        f"os.rename {COPY}.part",
        "create table if",
        "ALTER TABLE jobs",
        "insert into jobs",
        "DROP TABLE unnumbered",
        "insert into accounts",
        "DROP TABLE named_accounts",
        "DROP TABLE named_jobs",
        "UPDATE alembic_version SET",
        "commit",
    } <= set(steps)
    for directory in directories[: len(steps) + 1]:
        check_after_death(directory, old)


@pytest.mark.slow
def test_an_upgrade_that_is_killed_at_any_moment_leaves_a_file_that_opens(tmp_path: Path) -> None:
    old = rows(unpack(tmp_path))
    directories = [tmp_path / f"{number}" for number in range(30)]
    killed("at_a_moment", directories)
    for directory in directories:
        check_after_death(directory, old)
