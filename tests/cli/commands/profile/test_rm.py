"""`svcctl profile rm`."""

from __future__ import annotations

import pytest
from support.shells import Shell


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("local", "profile local is built in and cannot be deleted\n"),
        (
            "prod",
            "no profile 'prod'\nhint: profiles are: local, local-reseller; create one with 'svcctl profile set prod'\n",
        ),
    ],
)
def test_a_profile_that_cannot_be_deleted_is_refused_before_anybody_is_asked(
    name: str, error: str, shell: Shell
) -> None:
    done = shell("profile", "rm", name)
    assert (done.returncode, done.stderr) == (2, f"svcctl: error: {error}")
