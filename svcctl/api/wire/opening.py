"""Choose what sends requests: svcctl's own pool of connections, or httpx for what only that can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svcctl.api.wire.dialling import Route, environment_proxies
from svcctl.api.wire.messages import Wire
from svcctl.api.wire.pool import Pool

if TYPE_CHECKING:
    import ssl

    import httpx


def opened(
    *, trust: ssl.SSLContext | None, socket: str | None, proxies: bool, transport: httpx.BaseTransport | None
) -> Wire:
    """A wire to a service: over a Unix socket, through the environment's proxies, or by a given transport."""
    known = environment_proxies() if proxies and socket is None and transport is None else {}
    ours = all(url.startswith("http://") or "://" not in url for name, url in known.items() if name in ("https", "all"))
    if transport is None and ours:
        return Pool(Route(trust, socket, known))
    from svcctl.api.wire.through_httpx import ThroughHttpx

    return ThroughHttpx(transport, trust)
