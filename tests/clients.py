"""The client library on the service that a test's shell runs, without the command line in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
from shells import Shell

from svcctl.api.auth import Signature
from svcctl.api.client import Client


def client_of(shell: Shell, socket: Path | None = None, **options: Any) -> Client:
    """A client with the local profile's credentials, on the service's socket or another one."""
    credentials = json.loads((shell.home / "data" / "credentials.json").read_text())["local"]
    transport = httpx.HTTPTransport(uds=str(socket or shell.home / "data" / "service.sock"))
    signature = Signature(credentials["api_key"], credentials["api_secret"])
    return Client("http://localhost", signature, transport=transport, **options)
