"""A Hadoop cluster of one NameNode and two DataNodes; tests read its files over WebHDFS, by plain HTTP."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

import httpx

from peers.installed import DIRECTORY, java
from peers.processes import HOST, Peer, Process, Together, free_port, running

# Hadoop 2 needs parts of the JDK that are closed in Java 17.
OPENED = [
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in ("java.lang", "java.util", "java.nio", "sun.nio.ch")
    ),
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
]
SERVERS = "org.apache.hadoop.hdfs.server"


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsPeer(Peer):
    """A cluster without permissions; it can store at most two copies of a block."""

    default_fs: str
    """The value of `fs.defaultFS` for clients."""
    web: str

    def fresh_directory(self) -> str:
        """Return the path of a directory that does not exist and that no other test uses."""
        return f"/tests/{uuid.uuid4().hex[:12]}"

    def read(self, path: str) -> bytes:
        """Return the bytes of a file, also while it is written. Raises FileNotFoundError when it does not exist."""
        return self._get(path, "OPEN").content

    def status(self, path: str) -> dict[str, object]:
        """Return `length`, `replication`, `type` and other properties of a path, by the NameNode's names."""
        found: dict[str, object] = self._get(path, "GETFILESTATUS").json()["FileStatus"]
        return found

    def files(self, directory: str) -> dict[str, bytes]:
        """Return all files below a directory, by their relative paths."""
        found: dict[str, bytes] = {}
        for entry in self._get(directory, "LISTSTATUS").json()["FileStatuses"]["FileStatus"]:
            name, path = entry["pathSuffix"], f"{directory}/{entry['pathSuffix']}"
            if entry["type"] == "DIRECTORY":
                found |= {f"{name}/{inner}": content for inner, content in self.files(path).items()}
            else:
                found[name] = self.read(path)
        return dict(sorted(found.items()))

    def _get(self, path: str, operation: str) -> httpx.Response:
        url = f"{self.web}/webhdfs/v1{quote(path)}"
        answer = httpx.get(url, params={"op": operation}, follow_redirects=True, timeout=30)
        if answer.status_code == 404:
            raise FileNotFoundError(path)
        answer.raise_for_status()
        return answer


@contextmanager
def hadoop(directory: Path) -> Iterator[HdfsPeer]:
    """A cluster of Hadoop 2.7; its files survive a stop."""
    # The web servers need a folder of pages that the jars do not contain; an empty one is enough.
    for name in ("hdfs", "datanode"):
        pages = directory / "conf" / "webapps" / name / "WEB-INF"
        pages.mkdir(parents=True)
        (pages / "web.xml").write_text("<web-app/>", encoding="ascii")
    port, web = free_port(), f"{HOST}:{free_port()}"
    shared = {
        "fs.defaultFS": f"hdfs://{HOST}:{port}",
        "dfs.namenode.http-address": web,
        "dfs.replication": 2,
        "dfs.permissions.enabled": "false",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.namenode.safemode.extension": 0,
        "dfs.heartbeat.interval": 1,
        "dfs.namenode.fs-limits.min-block-size": 1,
    }

    def command(name: str, settings: dict[str, object], *more: str) -> list[str | Path]:
        class_path = f"{directory / 'conf'}:{DIRECTORY / 'hadoop'}/*"
        words = [word for key, value in {**shared, **settings}.items() for word in ("-D", f"{key}={value}")]
        return [*java(directory), *OPENED, "-cp", class_path, f"{SERVERS}.{name}", *words, *more]

    names: dict[str, object] = {"dfs.namenode.name.dir": f"file://{directory}/names"}
    formatting = [*command("namenode.NameNode", names), "-format", "-nonInteractive"]
    subprocess.run(formatting, cwd=directory, capture_output=True, check=True, timeout=60)
    name_node = Process(
        name="namenode",
        arguments=command("namenode.NameNode", names),
        directory=directory,
        ready=lambda: httpx.get(f"http://{web}/webhdfs/v1/", params={"op": "LISTSTATUS"}).raise_for_status(),
        not_yet=(httpx.HTTPError,),
    )
    data_nodes = [
        Process(
            name=f"datanode-{number}",
            arguments=command(
                "datanode.DataNode",
                {
                    "dfs.datanode.data.dir": f"file://{directory}/blocks-{number}",
                    "dfs.datanode.address": f"{HOST}:{free_port()}",
                    "dfs.datanode.http.address": f"{HOST}:{free_port()}",
                    "dfs.datanode.ipc.address": f"{HOST}:{free_port()}",
                },
            ),
            directory=directory,
            ready=partial(_accepts_writing, web, data_nodes=number),
        )
        for number in (1, 2)
    ]
    cluster = Together([name_node, *data_nodes])
    with running(cluster):
        yield HdfsPeer(server=cluster, default_fs=str(shared["fs.defaultFS"]), web=f"http://{web}")


def _accepts_writing(web: str, data_nodes: int) -> None:
    """Raise OSError unless this many DataNodes are up and, if they are all, files can be changed."""
    state = _bean(web, "FSNamesystemState")
    if state["NumLiveDataNodes"] != data_nodes:
        raise OSError(f"{state['NumLiveDataNodes']} of {data_nodes} DataNodes live")
    if data_nodes == 2 and state["FSState"] != "Operational":
        raise OSError(f"the NameNode is in state {state['FSState']}")


def _bean(web: str, name: str) -> dict[str, object]:
    answer = httpx.get(f"http://{web}/jmx", params={"qry": f"Hadoop:service=NameNode,name={name}"})
    (bean,) = answer.raise_for_status().json()["beans"]
    found: dict[str, object] = bean
    return found
