"""Prevents libraries from importing packages that they only offer conversions for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _Prevented:
    """A finder of packages, for `sys.meta_path`. It fails on the given packages, as if they were not installed."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, name: str, *_: object) -> None:
        if name in self._names:
            raise ModuleNotFoundError(name=name)


@contextmanager
def prevent_imports(*names: str) -> Iterator[None]:
    """Prevent the import of these packages inside the block. Packages that are already imported can still be used."""
    finder = _Prevented(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
