"""The bar of a load, which follows what the service reads."""

import os
from itertools import count
from pathlib import Path

from svcctl.cli.loads import load_progress
from svcctl.terminal.diagnostics import Work


def test_the_bar_of_a_load_counts_what_a_process_has_read_of_all_files(tmp_path: Path) -> None:
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file in files:
        file.write_bytes(b"x" * 1000)
    seconds = count(0, 2)
    tell = load_progress([(str(file), file.name) for file in files], os.getpid(), lambda: float(next(seconds)))
    assert tell() == Work("loading 2.0 kB, 2s")
    with files[1].open("rb", buffering=0) as opened:
        opened.read(500)
        assert tell() == Work("loading, 1.5 kB of 2.0 kB, 375 bytes/s", 1500, 2000)
    assert tell().done == 1500
