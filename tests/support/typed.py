"""Replaces the standard input of this process during a test."""

from __future__ import annotations

import io
import sys

import pytest


class Typed(io.BytesIO):
    """Bytes as a standard input that may be a terminal."""

    def isatty(self) -> bool:
        return True


def type_in(monkeypatch: pytest.MonkeyPatch, typed: bytes, *, terminal: bool = False) -> None:
    """Make standard input hold these bytes."""
    raw = Typed(typed) if terminal else io.BytesIO(typed)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw, encoding="utf-8"))
