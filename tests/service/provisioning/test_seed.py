"""The state of the local service, as the service and the commands beside it open it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.unversioned import unpack

from svcctl.errors import Locked
from svcctl.local_service import Files
from svcctl.service.provisioning.seed import open_store
from svcctl.service.queries import saved

RUNNING = """
import sys
from pathlib import Path
from svcctl.local_service import Files, hold_lock
lock = hold_lock(Files(Path(sys.argv[1])))
print("running", flush=True)
sys.stdin.read()
"""


def test_the_files_of_a_running_service_of_an_older_version_are_not_upgraded(tmp_path: Path) -> None:
    files = Files(tmp_path)
    before = unpack(tmp_path).read_bytes()
    script = [sys.executable, "-c", RUNNING, str(tmp_path)]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as service:
        assert service.stdout is not None
        assert service.stdout.readline() == b"running\n"
        with pytest.raises(Locked) as caught:
            open_store(files)
        assert (caught.value.message, caught.value.hint) == (
            f"state file {tmp_path}/state.db needs an upgrade, and the local service of an older svcctl is running",
            "stop it first: svcctl service stop",
        )
        assert (tmp_path / "state.db").read_bytes() == before
        assert service.stdin is not None
        service.stdin.close()
    store = open_store(files)
    assert [query.id for query in saved.listed(store)] == ["large", "names"]
    store.close()
