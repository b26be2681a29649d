"""The client library on the service that a test's shell runs, without the command line in between."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx

from support.shells import Shell
from svcctl.api.auth import Signature
from svcctl.api.client import Client


def client_of(shell: Shell, socket: Path | None = None, **options: Any) -> Client:
    """A client with the local profile's credentials, on the service's socket or another one."""
    credentials = json.loads((shell.home / "data" / "credentials.json").read_text())["local"]
    transport = httpx.HTTPTransport(uds=str(socket or shell.home / "data" / "service.sock"))
    signature = Signature(credentials["api_key"], credentials["api_secret"])
    return Client("http://localhost", signature, transport=transport, **options)


def without_cid(stderr: str) -> str:
    """What was said, without the identifier that every request gets anew."""
    return re.sub(r"(, cid [0-9a-f]{12})(?=\))", "", stderr)
