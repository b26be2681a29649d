"""Shared by the tests: shells, terminals, clients, a service in the same process, and the places of files."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The top of the repository."""
GOLDEN = ROOT / "tests" / "golden"
