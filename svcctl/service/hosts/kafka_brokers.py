"""The brokers of a Kafka cluster, and whether the service may connect to them.

The client library resolves names and connects by itself, without a filter. The hosts of `bootstrap.servers` are checked
first, and the library gets their addresses in place of names, unless it needs the names. The brokers that the cluster
advertises are checked when they are first listed, before anything is sent to them. A broker that appears later is
checked within a second. If a name gets another address between the check and the connection, this is not noticed.
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
"""The interval at which the library reports the brokers that it knows."""
_SERVER = re.compile(r"(?:\w+://)?(?:\[([^\[\]\s]+)\]|([^\[\]\s:/,]+))(?::(\d{1,5}))?/?")


class Brokers:
    """The brokers that a job's client learns of. A broker that is not allowed ends the delivery."""

    def __init__(self, allowed: AllowedHosts) -> None:
        self._allowed = allowed
        self._names: dict[str, str] = {}
        """The names that the job uses for brokers, by the brokers' addresses and ports."""
        self._checked: set[tuple[str, int]] = set()
        self._refused: HostRefused | None = None

    def bootstrap(self, servers: str, settings: Mapping[str, str]) -> str:
        """Check a list of servers, and return the list for the library.

        In the returned list, addresses replace names, unless the library needs the names.

        Raises HostRefused if a server is not allowed, Unavailable if a server has no address, and ServiceError if the
        list cannot be read.
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
        """Settings that make the library report its brokers."""
        if self._allowed.unlimited:
            return {}
        return {"statistics.interval.ms": WATCH_MILLISECONDS, "stats_cb": self._watch}

    def name(self, broker: str) -> str:
        """Return the name that the job uses for a broker in a message of the library."""
        return self._names.get(broker, broker)

    def check(self, brokers: Iterable[tuple[str, int]]) -> None:
        """Raise HostRefused if a broker that the cluster advertises is not allowed.

        A broker without an address is skipped, since the library cannot connect to it either.
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
        """Check the brokers that the library has learned of since the last call, including coordinators of groups."""
        for row in json.loads(statistics)["brokers"].values():
            host, _, port = row["nodename"].rpartition(":")
            peer = (host.strip("[]"), int(port or 0))  # a coordinator that is not known yet has no address
            known = peer in self._checked or row["nodename"] in self._names
            if peer[0] and peer[1] and not known:
                try:
                    self.check([peer])
                except HostRefused as error:
                    self._refused = error


def _parsed(servers: str) -> Iterator[tuple[str, int]]:
    """Yield the hosts and ports in a list of servers."""
    for entry in filter(None, re.split(r"[\s,]+", servers)):
        match = _SERVER.fullmatch(entry)
        port = int(match[3] or DEFAULT_PORT) if match else 0
        if match is None or not 0 < port <= 65_535:
            raise ServiceError(
                "destination.params: bootstrap.servers must be brokers as host:port, separated by commas"
            )
        yield match[1] or match[2], port
