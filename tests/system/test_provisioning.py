"""Domains and roles as a reseller meets them: real commands, the real service, a terminal where one is needed."""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
from typing import Any

import pytest
from support.clients import without_cid
from support.pseudo_terminal import on_terminal

RESELLER = {"SVCCTL_PROFILE": "local-reseller"}
ROLE = """\
name: Night shift
description: Watches, and acknowledges alerts
policies: [Search, Alerts]
applications: [explorer]
resourceIds:
  tables: [1, 2]
  lookups: [7]
defaultApplicationName: explorer
"""
APPLIED = """\
new role 'Night shift' in acme
+ description: Watches, and acknowledges alerts
+ policies: Alerts, Search
+ applications: explorer
+ resourceIds: 1, 2, 7
+ defaultApplicationName: explorer
"""
SESSION: list[tuple[str, int, str, str]] = [
    (
        "domain create acme --plan basic --time 14",
        0,
        "name,plan,time,volume,status\nacme@demo,basic,14.0,10.0,Active\n",
        "svcctl: nobody can use acme@demo until it has an owner: "
        "svcctl service accounts user EMAIL acme@demo --role OWNER\n",
    ),
    (
        "role apply acme --file night-shift.yaml --yes",
        5,
        "",
        "svcctl: error: domain acme@demo has no owner and cannot be accessed until one is assigned (code 119)\n"
        "hint: assign one with: svcctl service accounts user EMAIL acme@demo --role OWNER\n",
    ),
    (
        "service accounts user ann@acme.example acme@demo --role OWNER",
        0,
        "",
        "svcctl: ann@acme.example has the role OWNER in acme@demo\n",
    ),
    ("role lint night-shift.yaml", 0, "file,line,role,level,rule,message\n", ""),
    ("role apply acme --file night-shift.yaml --yes", 0, APPLIED, "svcctl: created role 'Night shift' in acme\n"),
    (
        "role apply acme --file night-shift.yaml --yes",
        0,
        "",
        "svcctl: nothing to do: the roles in acme are already as in night-shift.yaml\n",
    ),
    ("domain disable acme", 0, "", "svcctl: domain acme@demo is disabled\n"),
    (
        "domain disable acme",
        5,
        "",
        "svcctl: error: domain acme@demo is already disabled (code 117)\nhint: --if-needed allows that\n",
    ),
    ("domain disable acme --if-needed", 0, "", "svcctl: nothing to do: domain acme@demo is already disabled\n"),
    ("domain enable acme", 0, "", "svcctl: domain acme@demo is enabled\n"),
    (
        "domain rm acme --yes",
        0,
        "",
        "svcctl: deleted acme@demo (plan basic, Active) and the user ann@acme.example\n",
    ),
    ("domain show acme", 4, "", "svcctl: error: no domain acme@demo (code 106)\n"),
    ("domain list", 0, "name,plan,time,volume,status\n", ""),
]


def test_a_domain_gets_a_role_and_goes_again(service: Any) -> None:
    (service.home / "night-shift.yaml").write_text(ROLE, encoding="utf-8")
    for line, code, stdout, stderr in SESSION:
        done = service(*line.split(" "), **RESELLER)
        assert (line, done.returncode, done.stdout, without_cid(done.stderr)) == (line, code, stdout, stderr)


def test_the_local_profile_administrates_its_domain_and_is_no_reseller(service: Any) -> None:
    assert service("role", "create", "local", "--name", "Readers", "--policies", "Search").returncode == 0
    listed = service("role", "list", "local", "-f", "csv").stdout
    assert listed.splitlines()[1] == 'Readers,"[""Search""]",[],"{""ids"":[]}",,'
    for user, role in (("kim@local.example", "OWNER"), ("lou@local.example", "Readers")):
        assert service("service", "accounts", "user", user, "local", "--role", role).returncode == 0
    removed = service("role", "rm", "local", "Readers", "--yes")
    assert (removed.returncode, removed.stderr) == (
        0,
        "svcctl: deleted role 'Readers' of local, the role of lou@local.example\n"
        "svcctl: lou@local.example needs another role: "
        "svcctl service accounts user lou@local.example local --role USER\n",
    )
    refused = service("role", "list", "acme")
    assert (refused.returncode, without_cid(refused.stderr)) == (
        3,
        "svcctl: error: the account belongs to domain local and cannot manage acme (code 126)\n"
        "hint: on the local service: svcctl -p local-reseller role …\n",
    )
    refused = service("domain", "list")
    assert (refused.returncode, "svcctl -p local-reseller domain" in refused.stderr) == (3, True)


def test_the_line_that_is_shown_with_a_key_makes_a_profile_that_works(service: Any) -> None:
    shown = on_terminal(service, "service", "accounts", "key", "--domain", "local", NO_COLOR="1").screen.splitlines()
    secret = next(line.split()[1] for line in shown if line.startswith("api_secret"))
    begin, _, settings = shown[-1].partition("svcctl profile set NAME ")
    assert begin == "svcctl: to use it (the command asks for the secret): "
    path = service.home / "secret"
    path.write_text(secret)
    path.chmod(0o600)
    assert service("profile", "set", "mine", *shlex.split(settings), f"api_secret_file={path}").returncode == 0
    assert service("-p", "mine", "query", "from auth.all limit 1", "--from", "1d").returncode == 0


def test_keys_made_while_the_service_runs_work_until_their_domain_is_disabled(service: Any) -> None:
    service("domain", "create", "keyed", "--plan", "trial", **RESELLER)
    service("service", "accounts", "user", "ann@acme.example", "keyed@demo", "--role", "OWNER")
    made = service("service", "accounts", "key", "--domain", "keyed@demo", "--admin", "-f", "csv")
    key, secret, _ = made.stdout.splitlines()[1].split(",")
    socket = service.home / "data" / "service.sock"
    profile = {"base_url": "http://localhost", "socket": str(socket), "api_key": key, "api_secret": secret}
    config = service.home / "keyed.yaml"
    config.write_text(json.dumps({"profiles": {"keyed": profile}}))
    config.chmod(0o600)
    keyed = {"SVCCTL_CONFIG": str(config), "SVCCTL_PROFILE": "keyed"}
    query = ("query", "from demo.ecommerce.data select method limit 1", "--from", "1d")
    assert service("role", "list", "keyed", **keyed).returncode == 0
    assert service(*query, **keyed).returncode == 0
    service("domain", "disable", "keyed", **RESELLER)
    closed = service(*query, **keyed)
    assert (closed.returncode, closed.stderr.split(" (")[0]) == (
        5,
        "svcctl: error: domain keyed@demo is disabled and cannot be accessed",
    )
    service("domain", "rm", "keyed", "--yes", **RESELLER)
    assert service(*query, **keyed).returncode == 3


@pytest.mark.parametrize(("typed", "code"), [("acme", 130), ("typed@demo", 0)])
def test_a_deletion_wants_the_name_on_a_terminal(service: Any, typed: str, code: int) -> None:
    service("domain", "create", "typed", "--plan", "trial", "--if-needed", **RESELLER)
    terminal, inner = pty.openpty()
    process = service.start("-p", "local-reseller", "domain", "rm", "typed", stdin=inner, stderr=inner)
    os.close(inner)
    said = b""
    try:
        while b"(type its name):" not in said:
            assert select.select([terminal], [], [], 30)[0], said
            said += os.read(terminal, 1024)
        os.write(terminal, typed.encode() + b"\n")
        assert process.wait(30) == code
    finally:
        process.kill()
        os.close(terminal)
    assert service("domain", "show", "typed", **RESELLER).returncode == (4 if code == 0 else 0)
