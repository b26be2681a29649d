"""`svcctl domain apply` and `export`: differences, changes, and files that change nothing."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from support.reseller import Reseller

DOMAINS = "- {name: acme, plan: basic}\n- {name: beta@demo, plan: full, time: 1, state: disabled}\n"


def test_domains_of_a_file_are_created_and_disabled_and_the_second_time_nothing_is_done(
    reseller: Reseller, tmp_path: Path
) -> None:
    file = tmp_path / "domains.yaml"
    file.write_text(DOMAINS)
    apply = ("domain", "apply", "-F", str(file))
    shown = "new domain 'acme'\n+ plan: basic\nnew domain 'beta'\n+ plan: full\n+ time: 1\n+ state: disabled\n"
    trial = reseller(*apply, "--check")
    assert (trial.code, trial.stdout) == (10, shown)
    assert trial.stderr == f"svcctl: error: 2 domains differ from {file}\n"
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


def test_amounts_of_a_file_are_numbers_also_where_variables_give_them(reseller: Reseller, tmp_path: Path) -> None:
    file = tmp_path / "domains.yaml"
    file.write_text("- {name: 007, plan: basic, time: '{{days}}', volume: 1.5}\n- {name: no, plan: basic, time: 1e1}\n")
    done = reseller("domain", "apply", "-F", str(file), "--var", "days=14", "--dry-run")
    assert (done.code, done.stdout) == (
        0,
        "new domain '007'\n+ plan: basic\n+ time: 14\n+ volume: 1.5\nnew domain 'no'\n+ plan: basic\n+ time: 10.0\n",
    )


def test_domains_are_pruned_only_if_there_are_no_more_than_the_user_says(reseller: Reseller, tmp_path: Path) -> None:
    file = tmp_path / "domains.yaml"
    file.write_text(DOMAINS)
    apply = ("domain", "apply", "-F", str(file), "--yes")
    reseller(*apply)
    file.write_text("name: acme\nplan: basic\n")
    refused = reseller(*apply, "--prune-domains", "0")
    assert (refused.code, {method for method, _, _ in refused.sent}) == (2, {"GET"})
    assert refused.stderr == (
        "svcctl: error: 1 domain is not in any file, more than the allowed 0: beta@demo\n"
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
    reseller: Reseller, tmp_path: Path, text: str, message: str
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
    reseller: Reseller, tmp_path: Path
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
                "line 10: volume must be more than 0 and at most 10 in plan 'basic', not 11",
            ),
            strict=True,
        ):
            assert error.startswith(f"svcctl: error: {file}, {start}")


def test_new_domains_are_not_checked_if_the_service_lists_no_plans(reseller: Reseller, tmp_path: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        is_list = request.url.path == "/domain"
        return httpx.Response(200, json=[]) if is_list else httpx.Response(404, json={"error": {"message": "no"}})

    file = tmp_path / "domains.yaml"
    file.write_text(DOMAINS)
    done = reseller("domain", "apply", "-F", str(file), "--dry-run", answer=answer)
    assert (done.code, done.stderr.startswith("svcctl: not checked: the names, plans,")) == (0, True)


def test_the_plan_of_a_domain_cannot_be_changed_by_a_file(reseller: Reseller, tmp_path: Path) -> None:
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
