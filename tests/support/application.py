"""Sends requests to the service's application in this process, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx
from starlette.types import ASGIApp


def answered(
    app: ASGIApp,
    method: str,
    path: str,
    content: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    client: tuple[str, int] | None = ("127.0.0.1", 123),
) -> httpx.Response:
    """Send a request and return the whole answer, also of an internal error. `client` is None as on a Unix socket."""

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=client)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as asker:
            return await asker.request(method, path, content=content, headers=headers)

    return asyncio.run(ask())
