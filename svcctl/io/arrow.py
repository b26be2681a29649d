"""The start of Arrow's library."""

from __future__ import annotations

import sys
import threading

_starting = threading.Lock()


def start_arrow() -> None:
    """Make Arrow's first array while it cannot import pandas, which would take half a second and 60 MB."""
    import pyarrow

    with _starting, _NoPandas():
        pyarrow.array([0])


class _NoPandas:
    """A block in which pandas cannot be imported."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ImportError

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)
