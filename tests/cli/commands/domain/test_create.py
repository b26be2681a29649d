"""`svcctl domain`: what is sent, printed, asked and answered."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from svcctl.api.models import DomainStatus
from svcctl.service.accounts import domains, users

HEADING = "name,plan,time,volume,status\n"
ACME = {"name": "acme", "plan": "basic"}


def test_a_domain_is_created_listed_and_shown(reseller: Any, machine: Any) -> None:
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
    reseller: Any, time: float | None, volume: float | None
) -> None:
    amounts = {key: value for key, value in (("time", time), ("volume", volume)) if value is not None}
    options = [word for key, value in amounts.items() for word in (f"--{key}", str(value))]
    done = reseller(
        *("domain", "create", "acme", "--plan", "p q", *options),
        answer=lambda request: httpx.Response(200, json={"name": "acme@demo"}),
    )
    assert (done.code, done.sent) == (0, [("POST", "/domain", {"name": "acme", "plan": "p q", **amounts})])


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (("list",), [("GET", "/domain", None)]),
        (("show", "a"), [("GET", "/domain/a", None)]),
        (("enable", "a@demo"), [("POST", "/domain/a@demo/enable", None)]),
        (("disable", "a/b"), [("POST", "/domain/a%2Fb/disable", None), ("GET", "/domain/a%2Fb", None)]),
        (("rm", "a", "--yes"), [("GET", "/domain/a", None), ("DELETE", "/domain/a@demo", None)]),
    ],
)
def test_the_other_operations_send_no_body(reseller: Any, arguments: tuple[str, ...], sent: list[Any]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=[] if arguments == ("list",) else {"name": "a@demo"})

    assert reseller("domain", *arguments, answer=answer).sent == sent


def test_paths_that_differ_come_from_the_profile(reseller: Any) -> None:
    done = reseller(
        *("domain", "enable", "a"),
        answer=lambda request: httpx.Response(200),
        paths={"domain": "/provisioning/v1/domain"},
    )
    sent = [("POST", "/provisioning/v1/domain/a/enable", None), ("GET", "/provisioning/v1/domain/a", None)]
    assert (done.code, done.sent, done.stderr) == (0, sent, "svcctl: domain a is enabled\n")


REFUSALS = [
    (("show", "nemo"), 4, "svcctl: error: no domain nemo@demo (code 106)\nhint: domains are: acme, waiting\n"),
    (
        ("show", "nemo@x"),
        4,
        "svcctl: error: no domain nemo@x (code 106)\nhint: domains are: acme@demo, waiting@demo\n",
    ),
    (("disable", "acmee"), 4, "svcctl: error: no domain acmee@demo (code 106)\nhint: did you mean 'acme'?\n"),
    (("show", "acmee"), 4, "svcctl: error: no domain acmee@demo (code 106)\nhint: did you mean 'acme'?\n"),
    (
        ("enable", "acme"),
        5,
        "svcctl: error: domain acme@demo is already enabled (code 117)\nhint: --if-needed allows that\n",
    ),
    (("enable", "waiting"), 5, "svcctl: error: domain waiting@demo is pending and cannot be enabled (code 118)\n"),
    (
        ("create", "acme", "--plan", "basic"),
        5,
        "svcctl: error: domain acme@demo already exists (code 122)\n"
        "hint: --if-needed allows that, if the domain has the same plan\n",
    ),
    (
        ("create", "b", "--plan", "x"),
        1,
        "svcctl: error: reseller 'demo' has no plan 'x'; its plans are basic, full, trial (code 123)\n",
    ),
    (
        ("create", "b", "--plan", "trial", "--time", "1"),
        1,
        "svcctl: error: plan 'trial' does not accept time (code 124)\n",
    ),
    (
        ("create", "a" * 60, "--plan", "basic"),
        1,
        f"svcctl: error: domain name '{'a' * 60}@demo' has 65 characters, more than 64 (code 121)\n",
    ),
]


@pytest.fixture
def two(reseller: Any, machine: Any) -> None:
    """An active domain with two users, one of whom has another domain; and that one, which is pending."""
    for name in ("acme", "waiting"):
        domains.create(machine.store, "demo", {"name": name, "plan": "basic"})
        users.assign(machine.store, f"{name}@demo", "ann@acme.example", "OWNER")
    users.assign(machine.store, "acme@demo", "bob@acme.example", "USER")
    domains.set_status(machine.store, "waiting@demo", DomainStatus.PENDING)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(("arguments", "code", "stderr"), REFUSALS)
def test_a_refusal_is_one_line_and_an_exit_code(
    reseller: Any, arguments: tuple[str, ...], code: int, stderr: str
) -> None:
    done = reseller("domain", *arguments)
    assert (done.code, done.stdout, done.stderr) == (code, "", stderr)


@pytest.mark.usefixtures("two")
def test_if_needed_makes_each_change_idempotent(reseller: Any) -> None:
    def twice(*arguments: str) -> list[tuple[int, str]]:
        return [
            (done.code, done.stderr) for done in (reseller("domain", *arguments, "--if-needed", "-q") for _ in range(2))
        ]

    assert twice("create", "new", "--plan", "trial") == [(0, ""), (0, "")]
    assert twice("disable", "acme") == [(0, ""), (0, "")]
    assert twice("enable", "acme") == [(0, ""), (0, "")]
    assert twice("rm", "acme", "--yes") == [(0, ""), (0, "")]
    assert [line.split(",")[0] for line in reseller("domain", "list").stdout.split()] == [
        "name",
        "new@demo",
        "waiting@demo",
    ]


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("arguments", "code", "stderr"),
    [
        (("enable", "acme"), 0, "svcctl: nothing to do: domain acme@demo is already enabled\n"),
        (("rm", "nemo"), 0, "svcctl: nothing to do: no domain nemo@demo\n"),
        (("create", "acme", "--plan", "basic"), 0, "svcctl: nothing to do: domain acme@demo already exists\n"),
        (
            ("create", "acme", "--plan", "full"),
            5,
            "svcctl: error: domain acme@demo already exists with plan basic, not full\n",
        ),
        (
            ("create", "acme", "--plan", "basic", "--time", "3"),
            5,
            "svcctl: error: domain acme@demo already exists with time 30.0, not 3.0\n",
        ),
        (
            ("create", "b", "--plan", "x"),
            1,
            "svcctl: error: reseller 'demo' has no plan 'x'; its plans are basic, full, trial (code 123)\n",
        ),
        (("enable", "nemo"), 4, "svcctl: error: no domain nemo@demo (code 106)\nhint: domains are: acme, waiting\n"),
        (("enable", "waiting"), 5, "svcctl: error: domain waiting@demo is pending and cannot be enabled (code 118)\n"),
    ],
)
def test_if_needed_forgives_only_what_is_so_already(
    reseller: Any, arguments: tuple[str, ...], code: int, stderr: str
) -> None:
    done = reseller("domain", *arguments, "--if-needed")
    assert (done.code, done.stderr) == (code, stderr)


GOING = (
    "acme@demo (plan basic, Active) and the user bob@acme.example"
    " and the memberships of ann@acme.example (users of other domains)"
)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("typed_name", ["acme@demo", "acme"])
def test_a_deletion_shows_who_goes_and_wants_the_name_typed(reseller: Any, typed_name: str) -> None:
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
def test_a_deletion_says_what_it_knows_of_the_users(reseller: Any, extra: dict[str, Any], note: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"name": "a@r"} | extra)

    assert reseller("domain", "rm", "a", "--yes", answer=answer).stderr == f"svcctl: deleted a@r{note}\n"


def test_each_change_says_what_it_did_also_in_the_log_of_a_job_unless_it_is_to_be_quiet(reseller: Any) -> None:
    changes = {
        ("domain", "create", "acme", "--plan", "full"): "nobody can use acme@demo until it has an owner",
        ("domain", "disable", "acme"): "domain acme@demo is disabled",
        ("domain", "enable", "acme"): "domain acme@demo is enabled",
        ("role", "create", "acme", "--name", "R", "--policies", "Search,Alerts"): "created role 'R' in acme",
        ("role", "update", "acme", "R", "--policies", "Search"): "updated role 'R' in acme",
        ("role", "rm", "acme", "R", "--yes"): "deleted role 'R' of acme",
    }

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"name": "acme@demo"})

    for words, said in changes.items():
        told = [reseller(*words, *more, answer=answer, terminal=terminal).stderr for more, terminal in QUIET]
        assert told == [f"svcctl: {said}\n", "", f"svcctl: {said}\n"], words


QUIET: list[tuple[list[str], bool]] = [([], True), (["-q"], True), ([], False)]


# Files


DOMAINS = "- {name: acme, plan: basic}\n- {name: beta@demo, plan: full, time: 1, state: disabled}\n"


def test_domains_of_a_file_are_created_and_disabled_and_the_second_time_nothing_is_done(
    reseller: Any, tmp_path: Path
) -> None:
    file = tmp_path / "domains.yaml"
    file.write_text(DOMAINS)
    apply = ("domain", "apply", "-F", str(file))
    shown = "new domain 'acme'\n+ plan: basic\nnew domain 'beta'\n+ plan: full\n+ time: 1\n+ state: disabled\n"
    trial = reseller(*apply, "--check")
    assert (trial.code, trial.stdout) == (10, shown)
    assert trial.stderr == f"svcctl: error: 2 domains not as in {file}\n"
    assert reseller("domain", "list", "-f", "csv").stdout.count("demo") == 0
    done = reseller(*apply, "--yes")
    assert (done.code, done.stdout) == (0, shown)
    assert reseller(*apply, "--check").code == 0
    file.write_text(DOMAINS.replace("disabled", "enabled").replace("plan: basic", "plan: basic, state: disabled"))
    changed = reseller(*apply, "--yes")
    assert changed.stdout.splitlines()[1:3] == ["- state: enabled", "+ state: disabled"]
    exported = reseller("domain", "export")
    assert (exported.code, exported.stdout) == (
        0,
        "- {name: acme@demo, plan: basic, time: 30.0, volume: 10.0, state: disabled}\n"
        "- {name: beta@demo, plan: full, time: 1.0, volume: 1000.0, state: enabled}\n",
    )
    file.write_text(exported.stdout)
    assert reseller(*apply, "--check").code == 0


def test_amounts_of_a_file_are_numbers_also_where_variables_give_them(reseller: Any, tmp_path: Path) -> None:
    file = tmp_path / "domains.yaml"
    file.write_text("- {name: 007, plan: basic, time: '{{days}}', volume: 1.5}\n- {name: no, plan: basic, time: 1e1}\n")
    done = reseller("domain", "apply", "-F", str(file), "--var", "days=14", "--dry-run")
    assert (done.code, done.stdout) == (
        0,
        "new domain '007'\n+ plan: basic\n+ time: 14\n+ volume: 1.5\nnew domain 'no'\n+ plan: basic\n+ time: 10.0\n",
    )


def test_domains_are_pruned_only_if_there_are_no_more_than_the_user_says(reseller: Any, tmp_path: Path) -> None:
    file = tmp_path / "domains.yaml"
    file.write_text(DOMAINS)
    apply = ("domain", "apply", "-F", str(file), "--yes")
    reseller(*apply)
    file.write_text("name: acme\nplan: basic\n")
    refused = reseller(*apply, "--prune-domains", "0")
    assert (refused.code, {method for method, _, _ in refused.sent}) == (2, {"GET"})
    assert refused.stderr == (
        "svcctl: error: 1 domain is in no file, more than 0: beta@demo\n"
        "hint: to remove them with their users: --prune-domains 1\n"
    )
    assert reseller(*apply, "--prune-domains", "1").stdout == "removed domain 'beta'\n"
    assert reseller(*apply, "--prune-domains", "1").code == 0
    assert reseller("domain", "list", "-f", "csv").stdout.count("demo") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: acme\nplan: basic\nplam: x\n", "line 3: unknown key 'plam'"),
        ("name: acme\n", "line 1: the plan is missing"),
        ("name: acme\nplan: [7]\n", "line 2: plan is not text"),
        *(
            (f"name: acme\nplan: basic\ntime: {time}\n", f"line 3: time '{time}' is not a number")
            for time in ("x", "014", "0x1F", "1:30", "yes", ".inf", ".nan", "+1", "2024-01-31")
        ),
        ("name: acme\nplan: basic\ntime:\n", "line 3: time has no value"),
        ("name: acme\nplan: basic\ntime: !!int 1\n", "line 3: a value begins with '!'"),
        ("name: acme\nplan: basic\ntime: -1\n", "line 3: time must be 0 or more, not -1"),
        ("name: acme\nplan: basic\nvolume: 1e400\n", "line 3: volume must be 0 or more, not 1e400"),
        ("name: acme\nplan: basic\nstate: off\n", "line 3: state 'off' is not one of enabled, disabled"),
        ("name: acme\nplan: basic\nstate: on it\n", "line 3: state 'on it' is not one of enabled, disabled"),
        (
            "- {name: acme, plan: basic}\n- {name: acme@demo, plan: basic}\n",
            "line 2: domain 'acme@demo' is the same as 'acme' in",
        ),
    ],
)
def test_an_error_in_a_file_of_domains_names_its_place_before_anything_is_sent(
    reseller: Any, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "domains.yaml"
    file.write_text(text)
    done = reseller("domain", "apply", "-F", str(file), "--yes")
    assert (done.code, done.sent, f"{file}, {message}" in done.stderr) == (2, [], True)


WRONG = """\
- name: D 3!
  plan: basic
- {name: right, plan: basic}
- {name: elsewhere@other, plan: basic}
- name: no-plan
  plan: nosuch
- name: long
  plan: basic
  time: 1
  volume: 11
"""


def test_every_new_domain_that_the_service_would_refuse_is_reported_before_one_is_created(
    reseller: Any, tmp_path: Path
) -> None:
    file = tmp_path / "domains.yaml"
    file.write_text(WRONG)
    for trial in ("--check", "--yes"):
        done = reseller("domain", "apply", "-F", str(file), trial)
        assert [(method, path) for method, path, _ in done.sent if path == "/domain"] == [("GET", "/domain")]
        errors = [line for line in done.stderr.splitlines() if line.startswith("svcctl: error: ")]
        assert (done.code, done.stdout, len(errors)) == (2, "", 4)
        for error, start in zip(
            errors,
            (
                "line 1: invalid domain name 'D 3!'",
                "line 4: domain name 'elsewhere@other' must end in @demo",
                "line 6: reseller 'demo' has no plan 'nosuch'",
                "line 10: volume must be 0 < volume <= 10 in plan 'basic', got 11",
            ),
            strict=True,
        ):
            assert error.startswith(f"svcctl: error: {file}, {start}")


def test_new_domains_are_not_checked_where_the_service_does_not_tell(reseller: Any, tmp_path: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        is_list = request.url.path == "/domain"
        return httpx.Response(200, json=[]) if is_list else httpx.Response(404, json={"error": {"message": "no"}})

    file = tmp_path / "domains.yaml"
    file.write_text(DOMAINS)
    done = reseller("domain", "apply", "-F", str(file), "--dry-run", answer=answer)
    assert (done.code, done.stderr.startswith("svcctl: not checked: the names, plans,")) == (0, True)


def test_the_plan_of_a_domain_cannot_be_changed_by_a_file(reseller: Any, tmp_path: Path) -> None:
    file = tmp_path / "domains.yaml"
    file.write_text("name: acme\nplan: basic\n")
    reseller("domain", "apply", "-F", str(file), "--yes")
    file.write_text("name: acme\nplan: full\n")
    done = reseller("domain", "apply", "-F", str(file), "--yes")
    assert (
        done.code,
        {method for method, _, _ in done.sent},
        f"{file}, line 2: domain acme@demo has plan basic" in done.stderr,
    ) == (2, {"GET"}, True)
