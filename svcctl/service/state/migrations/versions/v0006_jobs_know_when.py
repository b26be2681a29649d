"""Jobs know since when they fail, and when they last delivered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for name in ("failing_since", "delivered"):
        op.add_column("jobs", sa.Column(name, sa.BigInteger().with_variant(sa.Integer(), "sqlite")))
