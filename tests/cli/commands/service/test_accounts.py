"""`svcctl service accounts`: everything that domains and roles need, made in the file of state."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from datetime import datetime, timedelta
from typing import Any

import jwt
import pytest
from support.shells import Shell

from svcctl.cli.commands.service.accounts import KIND_NAMES, REMOVABLE_KINDS
from svcctl.cli.commands.service.kinds import KINDS
from svcctl.errors import CredentialsError
from svcctl.service.accounts import domains
from svcctl.service.accounts.accounts import Account, with_key
from svcctl.service.http.auth import claimed


def accounts(reseller: Any, *arguments: str) -> Any:
    return reseller("service", "accounts", *arguments)


def listed(reseller: Any, kind: str) -> list[str]:
    done = accounts(reseller, "list", kind, "-f", "csv")
    assert (done.code, done.stderr) == (0, "")
    return str(done.stdout).splitlines()


def test_the_kinds_are_those_that_help_and_completion_name() -> None:
    assert tuple(KINDS) == KIND_NAMES
    assert tuple(name for name, kind in KINDS.items() if kind.remove) == REMOVABLE_KINDS


def test_a_fresh_service_holds_what_domains_can_be_tried_with(reseller: Any) -> None:
    assert listed(reseller, "resellers") == ["name,include_all_available_apps", "demo,true"]
    assert listed(reseller, "plans") == [
        "reseller,name,time,volume,policies,applications",
        'demo,basic,30.0,10.0,"Alerts, Lookups",dashboards',
        'demo,full,365.0,1000.0,"Administration, Alerts, Lookups","dashboards, reports"',
        "demo,trial,,,Alerts,dashboards",
    ]
    assert listed(reseller, "policies") == [
        "name,generic",
        "Administration,false",
        "Alerts,false",
        "Lookups,false",
        "Search,true",
    ]
    assert listed(reseller, "applications") == ["name,generic", "dashboards,false", "explorer,true", "reports,false"]
    assert listed(reseller, "domains") == ["name,plan,status,owner", "local,,Active,owner@localhost"]
    assert listed(reseller, "users") == ["email,domain,role,owner", "owner@localhost,local,ADMIN,true"]


def test_a_mistyped_role_is_answered_with_a_role(reseller: Any) -> None:
    assert reseller("domain", "create", "acme", "--plan", "basic").code == 0
    for role, hint in (("owner", "'OWNER'?"), ("BOSS", "OWNER, ADMIN, USER")):
        done = accounts(reseller, "user", "ann@acme.example", "acme", "--role", role)
        assert (done.code, f"'{role}'" in done.stderr, hint in done.stderr) == (4, True, True)


def test_a_reseller_with_all_it_sells_is_made(reseller: Any, machine: Any) -> None:
    big = ("plan", "big", "--reseller", "west", "--time", "7.5", "--policy", "Sorting", "--application", "maps")
    for arguments, what in (
        (("reseller", "west", "--no-include-all-apps"), "reseller west"),
        (("policy", "Sorting"), "policy Sorting"),
        (("application", "maps", "--generic"), "application maps"),
        (big, "plan west/big"),
    ):
        done = accounts(reseller, *arguments)
        assert (done.code, done.stdout, done.stderr) == (0, "", f"svcctl: stored {what}\n")
    assert "west,false" in listed(reseller, "resellers")
    assert "maps,true" in listed(reseller, "applications")
    assert "west,big,7.5,,Sorting,maps" in listed(reseller, "plans")
    assert domains.create(machine.store, "west", {"name": "a", "plan": "big"}).to_json() == {
        "name": "a@west",
        "plan": "big",
        "time": 7.5,
        "status": "Active",
    }


def test_a_key_is_shown_once_and_works(reseller: Any, machine: Any) -> None:
    domains.create(machine.store, "demo", {"name": "acme", "plan": "trial"})
    done = accounts(reseller, "key", "--domain", "acme@demo", "--admin", "-f", "csv")
    heading, values = done.stdout.splitlines()
    key, secret, token = values.split(",")
    assert heading == "api_key,api_secret,token"
    assert with_key(machine.store, key) == Account(key, secret, token, "acme@demo", administrator=True, domain_id=2)
    keys = listed(reseller, "keys")
    assert any(line.startswith(f"{key},,acme@demo,,true,") for line in keys)
    assert not any(secret in line or token in line for line in keys)
    other = accounts(reseller, "key", "--reseller", "demo", "-f", "csv").stdout.splitlines()[1].split(",")[0]
    assert any(line.startswith(f"{other},,,demo,false,") for line in listed(reseller, "keys"))
    gone = accounts(reseller, "rm", "keys", key, "--yes")
    assert (gone.code, gone.stdout, gone.stderr) == (0, "", f"svcctl: deleted {key} (of acme@demo) from the keys\n")
    assert with_key(machine.store, key) is None


def test_a_key_with_a_name_and_an_end_is_listed_and_deleted_by_its_name(reseller: Any, machine: Any) -> None:
    made = accounts(reseller, "key", "--domain", "local", "--name", "ann", "--expires", "3d", "-f", "csv")
    assert (made.code, made.stderr.startswith("svcctl: the key expires 20")) == (0, True)
    key, secret, token = made.stdout.splitlines()[1].split(",")
    accounts(reseller, "key", "--domain", "local", "--name", "ann-2", "--expires", "2100-01-31")
    [ann, after] = [row for row in csv.DictReader(listed(reseller, "keys")) if row["name"].startswith("ann")]
    assert (ann["api_key"], ann["name"], ann["domain"], ann["status"]) == (key, "ann", "local", "expiring")
    length = datetime.fromisoformat(ann["expires"]) - datetime.fromisoformat(ann["created"])
    assert timedelta(days=3, seconds=-5) < length <= timedelta(days=3)
    assert (after["expires"], after["last_used"], after["status"]) == ("2100-01-31T00:00:00.000Z", "", "valid")
    for form in ("csv", "json", "table", "vertical"):
        shown = accounts(reseller, "list", "keys", "-f", form).stdout
        assert (key in shown, secret in shown, token in shown) == (True, False, False)
    asked = reseller("service", "accounts", "rm", "keys", "ann", answers=["y"])
    assert (asked.code, asked.questions) == (0, [f"Delete ann ({key}, of local) from the keys?"])
    assert with_key(machine.store, key) is None


def test_a_new_key_replaces_an_old_one_without_a_gap_and_the_last_use_is_known(shell: Shell) -> None:
    def listing() -> dict[str, dict[str, str]]:
        rows = csv.DictReader(shell("service", "accounts", "list", "keys", "-f", "csv").stdout.splitlines())
        return {row["name"]: row for row in rows}

    def make(name: str) -> None:
        command = ("service", "accounts", "key", "--domain", "local", "--name", name, "--expires", "6d", "-f", "csv")
        [key] = csv.DictReader(shell(*command).stdout.splitlines())
        where = ("base_url=http://localhost", f"socket={shell.home / 'data' / 'service.sock'}")
        given = (f"api_key={key['api_key']}", "api_secret=-")
        assert shell("profile", "set", name, *where, *given, stdin=key["api_secret"]).returncode == 0

    def codes() -> list[int]:
        return [shell("--profile", name, "job", "list").returncode for name in ("etl", "etl-2")]

    assert shell("service", "start").returncode == 0
    make("etl")
    make("etl-2")
    assert codes() == [0, 0]
    shown = shell("service", "status", "-f", "csv").stdout
    assert ("etl expires 20" in shown, "etl-2 expires 20" in shown) == (True, True)
    assert shell("service", "accounts", "rm", "keys", "etl", "--yes").returncode == 0
    assert codes() == [3, 0]
    make("unused")
    assert shell("service", "stop").returncode == 0
    assert {name: bool(row["last_used"]) for name, row in listing().items() if "profile" not in name} == {
        "etl-2": True,
        "unused": False,
    }


def test_a_token_of_a_key_authorizes_until_it_expires(reseller: Any, machine: Any) -> None:
    domains.create(machine.store, "demo", {"name": "acme", "plan": "trial"})
    key = accounts(reseller, "key", "--domain", "acme@demo", "-f", "csv").stdout.splitlines()[1].split(",")[0]
    made = accounts(reseller, "token", key, "--expires", "30m")
    assert (made.code, made.stderr, made.stdout.count("\n")) == (0, "", 1)
    token = made.stdout.strip()
    claims = jwt.decode(token, options={"verify_signature": False})
    assert (claims["iss"], 1700 < claims["exp"] - time.time() <= 1800) == (key, True)
    found = claimed({"authorization": f"jwt {token}"}, machine.store, time.time)(b"")
    assert found == with_key(machine.store, key)
    accounts(reseller, "key", "--domain", "acme@demo", "--name", "ann", "--expires", "2d")
    assert accounts(reseller, "token", "ann", "--expires", "1d").code == 0
    refused = accounts(reseller, "token", "ann", "--expires", "3d")
    assert (refused.code, "before the token" in refused.stderr) == (2, True)
    expired = accounts(reseller, "token", key, "--expires", "0").stdout.strip()
    with pytest.raises(CredentialsError):
        claimed({"authorization": f"jwt {expired}"}, machine.store, time.time)


def test_users_and_states_are_the_providers_to_set(reseller: Any, machine: Any) -> None:
    domains.create(machine.store, "demo", {"name": "acme", "plan": "trial"})
    for arguments, said in (
        (
            ("user", "ann@acme.example", "acme@demo", "--role", "OWNER"),
            "ann@acme.example has the role OWNER in acme@demo",
        ),
        (("user", "bob@acme.example", "acme@demo"), "bob@acme.example has the role USER in acme@demo"),
        (("user", "bob@acme.example", "acme", "--role", "ADMIN"), "bob@acme.example has the role ADMIN in acme@demo"),
        (("user", "bob@acme.example", "acme"), "bob@acme.example has the role ADMIN in acme@demo"),
        (
            ("user", "bob@acme.example", "acme", "--role", "OWNER"),
            "bob@acme.example has the role OWNER in acme@demo; the owner was ann@acme.example, who stays ADMIN",
        ),
        (("user", "bob@acme.example", "acme", "--role", "OWNER"), "bob@acme.example has the role OWNER in acme@demo"),
        (("status", "acme", "disabled"), "domain acme@demo is Disabled"),
        (("status", "acme", "pending"), "domain acme@demo is Pending"),
    ):
        done = accounts(reseller, *arguments)
        assert (done.code, done.stdout, done.stderr) == (0, "", f"svcctl: {said}\n")
    assert listed(reseller, "domains")[1:] == [
        "acme@demo,trial,Pending,bob@acme.example",
        "local,,Active,owner@localhost",
    ]
    assert listed(reseller, "users")[1:3] == [
        "ann@acme.example,acme@demo,ADMIN,false",
        "bob@acme.example,acme@demo,ADMIN,true",
    ]
    table = accounts(reseller, "list", "users", "-f", "table").stdout.splitlines()
    assert [line.split() for line in table[2:4]] == [
        ["ann@acme.example", "acme@demo", "ADMIN", "false"],
        ["bob@acme.example", "acme@demo", "OWNER", "true"],
    ]


def test_a_user_leaves_one_domain_or_all(reseller: Any, machine: Any) -> None:
    for name in ("acme", "big"):
        domains.create(machine.store, "demo", {"name": name, "plan": "trial"})
        accounts(reseller, "user", "ann@acme.example", name, "--role", "OWNER")
        accounts(reseller, "user", "bob@acme.example", name)
    accounts(reseller, "user", "cid@acme.example", "big", "--role", "ADMIN")
    for name, lost in (
        ("acme@demo/bob@acme.example", "bob@acme.example (USER in acme@demo; stays in big@demo)"),
        ("cid@acme.example", "cid@acme.example (ADMIN in big@demo)"),
        ("bob@acme.example", "bob@acme.example (USER in big@demo)"),
    ):
        asked = reseller("service", "accounts", "rm", "users", name, answers=["y"])
        assert (asked.code, asked.stdout, asked.questions) == (0, "", [f"Delete {lost} from the users?"])
        assert lost in asked.stderr
    assert listed(reseller, "users")[1:] == [
        "ann@acme.example,acme@demo,ADMIN,true",
        "ann@acme.example,big@demo,ADMIN,true",
        "owner@localhost,local,ADMIN,true",
    ]
    mistyped = accounts(reseller, "rm", "users", "big@demo/ann@acme.exmple")
    assert (mistyped.code, "'big@demo/ann@acme.example'?" in mistyped.stderr) == (4, True)


@pytest.mark.parametrize(
    ("arguments", "code", "stderr"),
    [
        (
            ("list", "things"),
            2,
            "unknown kind 'things'\nhint: kinds are: keys, resellers, plans, policies, applications, domains, users",
        ),
        (("key",), 2, "a key belongs to a domain or to a reseller\nhint: give --domain NAME or --reseller NAME"),
        (("key", "nemo"), 2, "unexpected argument: nemo\nhint: see 'svcctl service accounts key --help'"),
        (("key", "--domain", "nemo"), 4, "no domain nemo (code 106)\nhint: domains are: local"),
        (("key", "--domain", "locla"), 4, "no domain locla (code 106)\nhint: did you mean 'local'?"),
        (("key", "--reseller", "west"), 4, "no reseller 'west'\nhint: resellers are: demo"),
        (("reseller", "a@b"), 2, "invalid reseller name 'a@b'\nhint: use any text without '@'"),
        (("policy", "*"), 2, "invalid policy name '*'\nhint: use any text but '*'"),
        (
            ("plan", "p", "--reseller", "nemo"),
            2,
            "no reseller 'nemo'\nhint: see 'svcctl service accounts list resellers'",
        ),
        (
            ("plan", "p", "--reseller", "demo", "--policy", "x"),
            2,
            "no policy 'x'\nhint: create it with 'svcctl service accounts policy'",
        ),
        (("user", "a@x", "local", "--role", "ONWER"), 4, "local has no role 'ONWER'\nhint: did you mean 'OWNER'?"),
        (
            ("user", "a@x", "local", "--role", "chef"),
            4,
            "local has no role 'chef'\nhint: roles are: OWNER, ADMIN, USER",
        ),
        (("user", "annacme", "local"), 2, "'annacme' is not an email address\nhint: write it as in ann@acme.example"),
        (("user", "a@x", "nemo"), 4, "no domain nemo (code 106)\nhint: domains are: local"),
        (("status", "locla", "Active"), 4, "no domain locla (code 106)\nhint: did you mean 'local'?"),
        (("status", "local", "Gone"), 2, "unknown status 'Gone'\nhint: a domain can be Active, Disabled, Pending"),
        (("rm", "domains", "local", "--yes"), 2, "domains cannot be deleted here\nhint: use: svcctl domain rm local"),
        (
            ("rm", "users", "local/owner@localhos"),
            4,
            "no user 'local/owner@localhos'\nhint: did you mean 'local/owner@localhost'?",
        ),
        (("rm", "users", "nobody@x", "--yes"), 4, "no user 'nobody@x'\nhint: users are: local/owner@localhost"),
        (
            ("rm", "users", "owner@localhost"),
            2,
            "owner@localhost is the owner of local\n"
            "hint: first make another user its owner: svcctl service accounts user EMAIL local --role OWNER",
        ),
        (
            ("rm", "keys", "x", "--yes"),
            4,
            "no key 'x'\nhint: list them with 'svcctl service accounts list keys'",
        ),
        (
            ("key", "--domain", "local", "--name", "a\nb"),
            2,
            "invalid key name 'a\\nb'\nhint: use printable characters, with no blank at the ends",
        ),
        (
            ("key", "--domain", "local", "--expires", "2020-01-31"),
            2,
            "'2020-01-31' is 2020-01-31 00:00:00 (UTC), which has passed\n"
            "hint: write a length from now with its unit, such as 8h or 90d, or a later date, such as 2030-01-31",
        ),
        (("token", "x"), 4, "no key 'x'\nhint: list them with 'svcctl service accounts list keys'"),
        (
            ("token", "x", "--expires", "soon"),
            2,
            "--expires 'soon' cannot be used: it is not a length such as 90, 30s, 5m, 1h30m or 1d",
        ),
        (
            ("rm", "policies", "x", "--yes"),
            4,
            "no policy 'x'\nhint: policies are: Administration, Alerts, Lookups, Search",
        ),
        (
            ("rm", "plans", "demo/x", "--yes"),
            4,
            "no plan 'x' of reseller 'demo'\nhint: plans are: demo/basic, demo/full, demo/trial",
        ),
        (
            ("rm", "plans", "demo/tril", "--yes"),
            4,
            "no plan 'tril' of reseller 'demo'\nhint: did you mean 'demo/trial'?",
        ),
        (("rm", "resellers", "demo", "--yes"), 2, "reseller 'demo' still has plans"),
        (
            ("rm", "policies", "Search"),
            2,
            "this needs confirmation: Delete Search from the policies?\nhint: add --yes",
        ),
    ],
)
def test_what_cannot_be_done_is_said(reseller: Any, arguments: tuple[str, ...], code: int, stderr: str) -> None:
    done = accounts(reseller, *arguments)
    assert (done.code, done.stdout, done.stderr) == (code, "", f"svcctl: error: {stderr}\n")


WITHOUT_PACKAGES = """
import sys
sys.modules["sqlalchemy"] = None
from svcctl.cli.main import main
sys.argv[0] = "svcctl"
main()
"""


@pytest.mark.parametrize(
    "command",
    [
        ("accounts", "list", "keys"),
        ("accounts", "rm", "keys", "k", "--yes"),
        ("accounts", "key", "--domain", "local"),
        ("accounts", "token", "k"),
        ("accounts", "reseller", "west"),
        ("accounts", "plan", "p", "--reseller", "demo"),
        ("accounts", "policy", "p"),
        ("accounts", "application", "a"),
        ("accounts", "user", "ann@x", "local"),
        ("accounts", "status", "local", "Active"),
        ("queries", "list"),
        ("queries", "show", "q"),
        ("queries", "set", "q", "from t"),
        ("queries", "rm", "q", "--yes"),
    ],
)
def test_every_command_on_the_state_names_the_extra_that_it_needs(shell: Shell, command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGES, "service", *command],
        env=shell.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, "svcctl[service]" in done.stderr) == (2, "", True)
