"""The state of the local service, as the service and the commands beside it open it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from peers.postgresql import PASSWORD
from sqlalchemy import update
from support import killed
from tools import first_start

from svcctl.errors import Locked
from svcctl.service.accounts import accounts, keys, price_plans
from svcctl.service.accounts.accounts import Account
from svcctl.service.accounts.seed import open_store
from svcctl.service.process import ServiceFiles, all_credentials
from svcctl.service.state.schema import version

RUNNING = """
import sys
from pathlib import Path
from svcctl.service.process import ServiceFiles, hold_lock
lock = hold_lock(ServiceFiles(Path(sys.argv[1])))
print("running", flush=True)
sys.stdin.read()
"""


def test_the_files_of_a_running_service_of_an_older_version_are_not_upgraded(tmp_path: Path) -> None:
    files = ServiceFiles(tmp_path)
    with closing(open_store(files)) as store, store.transaction() as connection:
        connection.execute(update(version).values(version_num="0000"))
    before = (tmp_path / "state.db").read_bytes()
    script = [sys.executable, "-c", RUNNING, str(tmp_path)]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as service:
        assert service.stdout is not None
        assert service.stdout.readline() == b"running\n"
        with pytest.raises(Locked) as caught:
            open_store(files)
        assert (caught.value.message, caught.value.hint) == (
            f"state file {tmp_path}/state.db needs an upgrade, and the local service of an older svcctl is running",
            "stop it first",
        )
        assert (tmp_path / "state.db").read_bytes() == before
        assert service.stdin is not None
        service.stdin.close()


@pytest.mark.parametrize(
    ("database", "statements", "kills"),
    [
        ("sqlite", 30, 4),
        pytest.param("sqlite", 1, 100, marks=pytest.mark.slow),
        ("postgresql_peer", 7, 15),
    ],
)
def test_a_first_start_that_is_killed_after_any_statement_is_whole_the_next_time(
    tmp_path: Path, request: pytest.FixtureRequest, database: str, statements: int, kills: int
) -> None:
    urls = []
    if database == "postgresql_peer":
        peer = request.getfixturevalue(database)
        urls = [peer.fresh_schema() for _ in range(2 * kills)]
    script = [sys.executable, killed.__file__, str(tmp_path), str(statements), *urls]
    environment = os.environ | {"PGPASSWORD": PASSWORD}
    done = json.loads(subprocess.run(script, env=environment, stdout=subprocess.PIPE, check=True).stdout)
    assert done["kills"] >= kills
    [outcome] = done["outcomes"]
    stored = {table: len(rows) for table, rows in outcome.items() if rows}
    assert stored == {
        "accounts": 2,
        "alembic_version": 1,
        "domains": 1,
        "features": 7,
        "members": 1,
        "plan_features": 10,
        "plans": 3,
        "resellers": 1,
        "users": 1,
    }


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql_peer"])
def test_a_service_whose_first_start_is_killed_at_any_moment_is_whole_the_next_time(
    tmp_path: Path, request: pytest.FixtureRequest, database: str
) -> None:
    environment = os.environ | {"HOME": str(tmp_path), "PGPASSWORD": PASSWORD, "SVCCTL_DEMO": "0"}
    script = [sys.executable, first_start.__file__, "--kills", "12"]
    if database == "postgresql_peer":
        script += ["--state", request.getfixturevalue(database).fresh_database()]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_what_is_removed_from_a_new_state_stays_removed(tmp_path: Path) -> None:
    files = ServiceFiles(tmp_path / "data")
    with closing(open_store(files)) as store:
        price_plans.remove_plan(store, "demo", "trial")
    with closing(open_store(files)) as store:
        assert [plan.name for plan in price_plans.plans(store)] == ["basic", "full"]


def test_accounts_of_the_built_in_profiles_are_stored_at_every_start(tmp_path: Path) -> None:
    files = ServiceFiles(tmp_path / "data")
    open_store(files).close()
    files.credentials.unlink()
    where = f"{socket.gethostname()}:{tmp_path}/data"
    with closing(open_store(files)) as store:
        own, reseller = all_credentials(files)
        assert accounts.with_key(store, own["api_key"]) == Account(
            *(own["api_key"], own["api_secret"], own["token"], "local"),
            administrator=True,
            domain_id=1,
            name=f"profile local of {where}",
        )
        assert accounts.with_key(store, reseller["api_key"]) == Account(
            *(reseller["api_key"], reseller["api_secret"], reseller["token"], ""),
            reseller="demo",
            name=f"profile local-reseller of {where}",
        )


def test_a_directory_whose_name_is_not_text_has_keys_with_a_name_that_is(tmp_path: Path) -> None:
    files = ServiceFiles(tmp_path / os.fsdecode(b"d\xff\xe9"))
    with closing(open_store(files)) as store:
        assert [(key.name or "").rpartition("/")[2] for key in keys.list_keys(store)] == ["d\ufffd\ufffd"] * 2
