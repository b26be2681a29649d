"""HDFS where nobody answers; what it does with a NameNode is in the tests of all storages."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hdfs_native import Client
from peers.hdfs import HdfsPeer
from peers.processes import free_port

from svcctl.errors import Unavailable, UsageError
from svcctl.storage.hdfs import Hdfs, failure

# What the errors say, each once; the tests state their kind.
WORDS = {
    "no connection": "{url}/a.csv: no connection to {url}: {reason}",
}
HINTS = {
    "no connection": "check host and port of the NameNode, and that it runs",
}


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("127.0.0.1", "Connection refused"),
        ("nowhere.invalid", "failed to lookup address information: Name or service not known"),
    ],
)
def test_a_namenode_that_nobody_runs_is_named_with_the_reason(host: str, reason: str) -> None:
    url = f"hdfs://{host}:{free_port()}"
    with pytest.raises(Unavailable) as caught:
        Hdfs(url).size("a.csv")
    assert (caught.value.message, caught.value.hint) == (
        WORDS["no connection"].format(url=url, reason=reason),
        HINTS["no connection"],
    )


def test_what_the_library_refuses_is_a_usage_error_and_what_it_cannot_do_now_is_not() -> None:
    with pytest.raises(RuntimeError) as refused:
        Client("other://host")
    error = failure("hdfs://h/a", refused.value)
    told = "hdfs://h/a: Only `hdfs` and `viewfs` schemes are supported"
    assert (type(error), error.message) == (UsageError, told)
    assert isinstance(failure("hdfs://h/a", RuntimeError("RPCError(no answer)")), Unavailable)


@pytest.mark.slow
def test_ends_of_connections_and_of_the_process_never_wait_for_each_other() -> None:
    many = f"""
from contextlib import suppress
from svcctl.errors import Unavailable
from svcctl.storage.hdfs import Hdfs
for _ in range(4000):
    with suppress(Unavailable):
        Hdfs("hdfs://127.0.0.1:{free_port()}").size("a.csv")
"""
    done = subprocess.run([sys.executable, "-c", many], timeout=60, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_a_name_that_a_namenode_refuses_is_a_usage_error(hdfs_peer: HdfsPeer) -> None:
    storage = Hdfs(hdfs_peer.default_fs)
    with pytest.raises(UsageError, match=r"^hdfs://\S+/a/\.\./b: the NameNode refuses it \(Inv"):
        storage.create("a/../b", overwrite=True)


@pytest.mark.slow
@pytest.mark.parametrize("permission", ["600", "640", "444", "777"])
def test_a_replaced_file_keeps_its_owner_group_and_permissions_and_its_part_has_them(
    hdfs_peer: HdfsPeer, permission: str
) -> None:
    folder = hdfs_peer.fresh_directory()
    storage, client = Hdfs(hdfs_peer.default_fs), Client(hdfs_peer.default_fs)
    path, part = f"{folder}/rows.csv", f"{folder}/.rows.csv.part"

    def rights(path: str) -> tuple[object, ...]:
        status = hdfs_peer.status(path)
        return status["owner"], status["group"], status["permission"]

    with storage.create(path[1:], overwrite=False) as sink:
        assert rights(part)[2] == "644"
        sink.complete()
    client.set_owner(path, "ann", "team")
    client.set_permission(path, int(permission, 8))
    with storage.create(path[1:], overwrite=True) as sink:
        assert rights(part) == ("ann", "team", permission)
        sink.write(b"new")
        sink.complete()
    assert (rights(path), hdfs_peer.read(path)) == (("ann", "team", permission), b"new")
    with storage.create(f"{folder}/one"[1:], overwrite=True, part_of=path[1:]) as sink:
        sink.complete()
    assert rights(f"{folder}/one") == ("ann", "team", permission)


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["n", "é"])
def test_a_name_of_255_bytes_is_written(hdfs_peer: HdfsPeer, letter: str) -> None:
    name = "x" + letter * (254 // len(letter.encode()))
    storage = Hdfs(hdfs_peer.default_fs)
    path = f"{hdfs_peer.fresh_directory()}/{name}"[1:]
    with storage.create(path, overwrite=False) as sink:
        sink.write(b"rows")
        assert list(storage.names(path.rpartition("/")[0])) == []
        sink.complete()
    assert list(storage.names(path.rpartition("/")[0])) == [path]


@pytest.mark.parametrize(
    ("said", "reason", "hint"),
    [
        (
            'RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "a secret\\n\\tat java.Frame")',
            "the NameNode refuses it (SafeModeException)",
            "the NameNode says: a secret",
        ),
        ('RPCError("", "a secret")', "the NameNode refuses it", "the NameNode says: a secret"),
        ("connection reset\na secret", "connection reset", None),
    ],
)
def test_a_message_has_only_the_class_of_a_namenodes_answer(said: str, reason: str, hint: str | None) -> None:
    error = failure("hdfs://h/a", RuntimeError(said))
    assert (error.message, error.hint) == (f"hdfs://h/a: {reason}", hint)
