"""The brokers of a Kafka cluster, and whether the service may connect to them.

The Kafka library resolves names and opens connections itself. So the hosts of `bootstrap.servers` are checked before
the library gets the list. In the list for the library, the checked addresses replace the names of the hosts. If the
connections use TLS or Kerberos, the library needs the names, so the names stay in the list.

The cluster then sends the library a list of all brokers. These brokers are checked before any data is sent to them. A
broker that is added later is checked within about a second. If a name gets another address after the check, the
service does not notice the change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from svcctl.errors import ServiceError, Unavailable
from svcctl.service.hosts.allowed_hosts import AllowedHosts, HostRefused, shown

DEFAULT_PORT = 9092
WATCH_MILLISECONDS = 1000
"""The interval, in milliseconds, at which the library reports the brokers that it knows."""
_SERVER = re.compile(r"(?:\w+://)?(?:\[([^\[\]\s]+)\]|([^\[\]\s:/,]+))(?::(\d{1,5}))?/?")


class Brokers:
    """The brokers that the Kafka client of a job knows. A broker that is not allowed ends the delivery."""

    def __init__(self, allowed: AllowedHosts) -> None:
        self._allowed = allowed
        self._names: dict[str, str] = {}
        """Maps the HOST:PORT of each broker in the library's list to its HOST:PORT in the job's parameters."""
        self._checked: set[tuple[str, int]] = set()
        self._refused: HostRefused | None = None

    def bootstrap(self, servers: str, settings: Mapping[str, str]) -> str:
        """Check the list of servers in the parameters of a job, and return the list for the library.

        In the returned list, addresses replace the names. The names stay if the library needs them. Raises HostRefused
        if a server is not allowed. Raises Unavailable if a server has no address. Raises ServiceError if the list is
        invalid.
        """
        if self._allowed.unlimited:
            return servers
        protocol, mechanism = settings.get("security.protocol", "plaintext"), settings.get("sasl.mechanism", "GSSAPI")
        pinned = protocol == "plaintext" or (protocol == "sasl_plaintext" and mechanism.upper() != "GSSAPI")
        texts: list[str] = []
        for host, port in _parsed(servers):
            for address in self._allowed.addresses(host, port):
                text = shown(address if pinned else host, port)
                self._names[text] = shown(host, port)
                texts.append(text)
        return ",".join(dict.fromkeys(texts))

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings with which the Kafka library reports the brokers that it knows."""
        if self._allowed.unlimited:
            return {}
        return {"statistics.interval.ms": WATCH_MILLISECONDS, "stats_cb": self._watch}

    def name(self, broker: str) -> str:
        """Return the HOST:PORT of a broker in the job's parameters. `broker` is its HOST:PORT in the library's list.

        A broker that is not in the library's list is returned unchanged.
        """
        return self._names.get(broker, broker)

    def check(self, brokers: Iterable[tuple[str, int]]) -> None:
        """Raise HostRefused if the service may not connect to one of these brokers of the cluster.

        A broker without an address is skipped, because the library cannot connect to such a broker.
        """
        for host, port in () if self._allowed.unlimited else brokers:
            try:
                self._allowed.addresses(host, port)
            except HostRefused:
                raise
            except Unavailable:
                continue
            self._checked.add((host, port))

    def raise_refused(self) -> None:
        """Raise HostRefused if the library has reported a broker that is not allowed."""
        if self._refused is not None:
            raise self._refused

    def _watch(self, statistics: str) -> None:
        """Check the brokers that the library has discovered since the last call, including coordinators of groups.

        `statistics` is the JSON text in which the library reports its brokers.
        """
        for row in json.loads(statistics)["brokers"].values():
            host, _, port = row["nodename"].rpartition(":")
            peer = (host.strip("[]"), int(port or 0))  # an unknown coordinator has no address
            known = peer in self._checked or row["nodename"] in self._names
            if peer[0] and peer[1] and not known:
                try:
                    self.check([peer])
                except HostRefused as error:
                    self._refused = error


def _parsed(servers: str) -> Iterator[tuple[str, int]]:
    """Yield the host and the port of each server in a list of servers."""
    for entry in filter(None, re.split(r"[\s,]+", servers)):
        match = _SERVER.fullmatch(entry)
        port = int(match[3] or DEFAULT_PORT) if match else 0
        if match is None or not 0 < port <= 65_535:
            raise ServiceError(
                "destination.params: bootstrap.servers must be brokers as host:port, separated by commas"
            )
        yield match[1] or match[2], port
