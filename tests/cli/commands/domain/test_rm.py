"""`svcctl domain rm`: the people who lose the domain, and the name that is typed."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from support.reseller import Reseller

GOING = (
    "acme@demo (plan basic, Active) and the user bob@acme.example"
    " and the memberships of ann@acme.example (users of other domains)"
)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("typed_name", ["acme@demo", "acme"])
def test_a_deletion_names_its_users_and_asks_for_the_name(reseller: Reseller, typed_name: str) -> None:
    refused = reseller("domain", "rm", "acme")
    assert (refused.code, refused.stderr) == (
        2,
        f"svcctl: error: this needs confirmation: Delete {GOING}? (type its name)\nhint: add --yes\n",
    )
    wrong = reseller("domain", "rm", "acme", answers=["acne"])
    assert (wrong.code, wrong.stderr, wrong.questions) == (
        130,
        "svcctl: that was not 'acme@demo'\nsvcctl: nothing was done\n",
        [f"Delete {GOING}? (type its name)"],
    )
    assert reseller("domain", "show", "acme").code == 0
    typed = reseller("domain", "rm", "acme", answers=[typed_name], terminal=True)
    assert (typed.code, typed.stdout, typed.stderr) == (0, "", f"svcctl: deleted {GOING}\n")
    assert reseller("domain", "show", "acme").code == 4


@pytest.mark.parametrize(
    ("extra", "note"),
    [
        ({}, " and its users, completely when they have no other domain"),
        ({"users": []}, ", which has no users"),
        ({"users": [{"email": "a@x"}]}, " and the memberships of a@x (users of other domains)"),
    ],
)
def test_a_deletion_notes_the_users_that_the_service_names(
    reseller: Reseller, extra: dict[str, Any], note: str
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"name": "a@r"} | extra)

    assert reseller("domain", "rm", "a", "--yes", answer=answer).stderr == f"svcctl: deleted a@r{note}\n"
