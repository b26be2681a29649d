"""`svcctl domain create`, `list` and `show`."""

from __future__ import annotations

import itertools
import json

import httpx
import pytest
from support.reseller import Machine, Reseller

from svcctl.service.accounts import users

HEADING = "name,plan,time,volume,status\n"
ACME = {"name": "acme", "plan": "basic"}


def test_a_domain_is_created_listed_and_shown(reseller: Reseller, machine: Machine) -> None:
    created = reseller("domain", "create", "acme", "--plan", "basic", "--time", "14.5", "-f", "csv")
    assert (created.code, created.stdout, created.stderr) == (
        0,
        HEADING + "acme@demo,basic,14.5,10.0,Active\n",
        "svcctl: nobody can use acme@demo until it has an owner\n",
    )
    assert created.sent == [("POST", "/domain", ACME | {"time": 14.5})]
    listed = reseller("domain", "list", "-f", "tsv")
    assert listed.stdout == "name\tplan\ttime\tvolume\tstatus\nacme@demo\tbasic\t14.5\t10.0\tActive\n"
    users.assign(machine.store, "acme@demo", "ann@acme.example", "OWNER")
    shown = reseller("domain", "show", "acme", "-f", "table")
    assert shown.stdout.split("\n") == [
        "name       plan   time  volume  status  users",
        "---------  -----  ----  ------  ------  ------------------------",
        "acme@demo  basic  14.5    10.0  Active  ann@acme.example (owner)",
        "",
    ]
    assert json.loads(reseller("domain", "show", "acme@demo", "-f", "json").stdout) == {
        "name": "acme@demo",
        "plan": "basic",
        "time": 14.5,
        "volume": 10.0,
        "status": "Active",
        "users": [{"email": "ann@acme.example", "role": "ADMIN", "owner": True, "lastDomain": True}],
    }


@pytest.mark.parametrize(("time", "volume"), [*itertools.product([None, 0.0, 14.0, 0.25], [None, 0.0, 1e3])])
def test_a_create_sends_the_interfaces_fields_and_nothing_more(
    reseller: Reseller, time: float | None, volume: float | None
) -> None:
    amounts = {key: value for key, value in (("time", time), ("volume", volume)) if value is not None}
    options = [word for key, value in amounts.items() for word in (f"--{key}", str(value))]
    done = reseller(
        *("domain", "create", "acme", "--plan", "p q", *options),
        answer=lambda request: httpx.Response(200, json={"name": "acme@demo"}),
    )
    assert (done.code, done.sent) == (0, [("POST", "/domain", {"name": "acme", "plan": "p q", **amounts})])
