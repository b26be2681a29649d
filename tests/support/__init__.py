"""What tests share: shells, terminals, clients, a service in the same process, and storage places."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The top folder of the repository."""
GOLDEN = ROOT / "tests" / "golden"
