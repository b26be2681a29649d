"""The client library, connected to the service of a test's shell."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from support.shells import Shell
from svcctl.api.auth import Signature
from svcctl.api.client import Client


def client_of(shell: Shell, socket: Path | None = None, **options: Any) -> Client:
    """Make a client with the local profile's credentials, on the service's socket or on `socket`."""
    credentials = json.loads((shell.home / "data" / "credentials.json").read_text())["local"]
    signature = Signature(credentials["api_key"], credentials["api_secret"])
    return Client("http://localhost", signature, socket=str(socket or shell.home / "data" / "service.sock"), **options)


def without_cid(stderr: str) -> str:
    """Return stderr without the request IDs, which differ each time."""
    return re.sub(r"(, cid [0-9a-f]{12})(?=\))", "", stderr)
