"""Ceph's S3 gateway over one monitor and one disk in memory: a server that refuses what the protocol of S3 forbids."""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from peers.processes import HOST, Process, Together, free_port, running
from peers.s3 import KEY, SECRET, S3Peer

COMMANDS = ("ceph", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin")


@contextmanager
def radosgw(directory: Path) -> Iterator[S3Peer]:
    """A Ceph object gateway. The disk writes its memory to files when it is stopped, so objects survive."""
    cluster, disk = str(uuid.uuid4()), str(uuid.uuid4())
    monitor_address, port = f"{HOST}:{free_port()}", free_port()
    settings = {
        "fsid": cluster,
        "mon host": f"v1:{monitor_address}",
        **{f"auth {side} required": "none" for side in ("cluster", "service", "client")},
        "public network": f"{HOST}/32",
        "osd objectstore": "memstore",
        "osd fast shutdown": "false",  # a fast shutdown does not write the memory to files
        # A disk may report its place before it knows the cluster's ID, and would be refused.
        "osd crush update on start": "false",
        "osd class update on start": "false",
        "osd crush chooseleaf type": "0",
        "osd pool default size": "1",
        "osd pool default min size": "1",
        "osd pool default pg num": "4",
        "osd pool default pg autoscale mode": "off",
        "mon allow pool size one": "true",
        "mon max pg per osd": "1000",
        "mon data": directory / "monitor",
        "osd data": directory / "disk",
        "rgw data": directory / "gateway",
        "run dir": directory,
        "admin socket": directory / "$name.$pid.asok",
        "keyring": directory / "keyring",
        "log to stderr": "true",
        "log file": "",
        "mon cluster log to file": "false",
    }
    configuration = directory / "ceph.conf"
    lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
    configuration.write_text(f"[global]\n{lines}", encoding="utf-8")
    for name in ("monitor", "disk", "gateway"):
        (directory / name).mkdir()

    def run(*words: str | Path) -> str:
        command = [*words, "-c", configuration]
        deadline = time.monotonic() + 60
        while True:
            done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=60)
            if not done.returncode:
                return done.stdout
            # A monitor that has just started may refuse to list its commands; then the command has done nothing.
            if "command descriptions" not in done.stderr or time.monotonic() > deadline:
                raise OSError(f"{words[0]}: {done.stderr}")
            time.sleep(0.2)

    def a_disk_is_up() -> None:
        if json.loads(run("ceph", "osd", "stat", "--format", "json"))["num_up_osds"] != 1:
            raise OSError("the disk is not up")

    monitor = Process(
        name="ceph-mon",
        arguments=["ceph-mon", "-f", "-i", "a", "-c", configuration],
        directory=directory,
        ready=lambda: run("ceph", "--connect-timeout", "3", "mon", "stat"),
    )
    store = Process(
        name="ceph-osd",
        arguments=["ceph-osd", "-f", "-i", "0", "-c", configuration],
        directory=directory,
        ready=a_disk_is_up,
    )
    gateway = Process(
        name="radosgw",
        arguments=[
            "radosgw",
            "-f",
            "-n",
            "client.gateway",
            "-c",
            configuration,
            # Without tcp_nodelay, each answer with a body takes 40 ms.
            f"--rgw-frontends=beast endpoint={HOST}:{port} tcp_nodelay=1",
        ],
        directory=directory,
        ready=lambda: httpx.get(f"http://{HOST}:{port}").raise_for_status(),
        not_yet=(httpx.HTTPError,),
    )
    whole = Together([monitor, store, gateway])
    first_map = directory / "monmap"
    subprocess.run(
        ["monmaptool", "--create", "--fsid", cluster, "--addv", "a", f"[v1:{monitor_address}]", first_map],
        capture_output=True,
        check=True,
    )
    run("ceph-mon", "--mkfs", "-i", "a", "--monmap", first_map)
    try:
        monitor.start()
        run("ceph", "osd", "new", disk)
        run("ceph", "osd", "crush", "add", "osd.0", "1.0", "root=default", "host=here")
        run("ceph-osd", "--mkfs", "-i", "0", "--osd-uuid", disk)
        store.start()
        user = ("--uid", "peer", "--display-name", "peer", "--access-key", KEY, "--secret-key", SECRET)
        run("radosgw-admin", "user", "create", *user)
        with running(whole):
            yield S3Peer(server=whole, endpoint=f"http://{HOST}:{port}").fresh_bucket()
    finally:
        whole.stop()
