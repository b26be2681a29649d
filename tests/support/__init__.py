"""What tests share: shells, terminals, clients, a reseller at a service in the same process; and where files are."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The top of the repository."""
GOLDEN = ROOT / "tests" / "golden"
