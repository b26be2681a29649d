"""The real service without jobs, for commands that launch and change some."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.shells import Shell


@pytest.fixture
def jobs(service: Shell) -> Iterator[Shell]:
    """The service, without jobs of other tests before and after."""

    def clear() -> None:
        ids = service("job", "list", "--ids").stdout
        assert service("job", "rm", "--yes", "-", stdin=ids).returncode == 0

    clear()
    yield service
    clear()
