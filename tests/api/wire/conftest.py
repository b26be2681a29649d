from __future__ import annotations

from pathlib import Path

import pytest
from support.certificates import self_signed


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost and its key, in one file."""
    return self_signed(tmp_path_factory.mktemp("tls") / "localhost.pem", "localhost")
