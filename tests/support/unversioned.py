"""The files of a local service that were written before its state had a version (see tests/fixtures/README.md)."""

from __future__ import annotations

import gzip
from pathlib import Path

from support import ROOT

FILES = ROOT / "tests" / "fixtures" / "unversioned"


def unpack(directory: Path) -> Path:
    """Unpack state.db and events.duckdb of a crashed service into a directory. Returns the path of state.db."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for packed in FILES.glob("*.gz"):
        unpacked = directory / packed.name.removesuffix(".gz")
        unpacked.write_bytes(gzip.decompress(packed.read_bytes()))
        unpacked.chmod(0o600)
    return directory / "state.db"
