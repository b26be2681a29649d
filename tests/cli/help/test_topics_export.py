"""The recipes of `svcctl help export`: tried as far as this machine goes."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from support.shells import Shell, add_command
from support.terminal import need

from svcctl.cli.help import topics


def recipe(start: str, end: str) -> str:
    """The indented lines of the page between two words."""
    page = topics.read("export")
    section = page[page.index(start) : page.index(end, page.index(start)) if end else None]
    return "\n".join(line[2:] for line in section.split("\n")[1:] if line.startswith("  ") or not line)


def test_the_page_begins_with_its_recipes_and_has_at_most_120_lines() -> None:
    page = topics.read("export")
    assert len(page.split("\n")) <= 120
    firsts = [block.split("\n")[0].split()[0] for block in page.split("\n\n") if block.startswith("  ")]
    assert [first.partition("=")[0] for first in firsts[:5]] == [
        "svcctl",
        "PATTERN",
        "[Service]",
        "ExecStart",
        "apiVersion:",
    ]
    explained = page[page.index("\nWindows begin") :]
    assert [line for line in explained.split("\n") if re.search("cron|Service]|apiVersion", line)] == []


@pytest.mark.slow
def test_the_lines_of_the_crontab_run_with_what_cron_gives_them(service: Shell, tmp_path: Path) -> None:
    (tmp_path / "auth.q").write_text("from auth.all\n")
    told = re.search(r"'(command -v svcctl)'", topics.read("export"))
    assert told is not None
    path = subprocess.run(
        ["/bin/sh", "-c", told[1]],
        env={"PATH": str(add_command(tmp_path).parent)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    variables = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    variables["SVCCTL_DATA"] = service.environment["SVCCTL_DATA"]
    lines = [line for line in recipe("cron:", "systemd:").split("\n") if line]
    for _ in range(2):
        name, _, value = lines.pop(0).partition("=")
        variables[name] = value.replace("/srv/auth", str(tmp_path / "auth"))
    assert len(lines) == 5
    for line in lines:
        typed = line.split(maxsplit=5)[5].replace("/srv/auth", str(tmp_path / "auth"))
        assert re.search(r"(?<!\\)%", typed) is None  # cron would end the command there
        typed = re.sub("^svcctl", shlex.quote(path), typed)
        done = subprocess.run(
            ["/bin/sh", "-c", typed.replace("\\%", "%")],
            env=variables,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(list((tmp_path / "auth").glob("*/*/*/*.csv.gz"))) >= 23
    assert len(list(tmp_path.glob("20??-??-??.csv.gz"))) == 1
    assert "svcctl_export_reconcile_success{" in (tmp_path / "auth" / "late.prom").read_text()


def nightly() -> str:
    """The units of the export with the lines of the page that make them those of its reconcile."""
    command, _, calendar = recipe("To run 'export reconcile' each night,", "Kubernetes:").partition("OnCalendar=")
    units = re.sub(
        r"ExecStart=.*\\\n.*\n", lambda _: command, recipe("systemd:", "To run 'export reconcile' each night,")
    )
    return units.replace("OnCalendar=hourly", f"OnCalendar={calendar.strip()}")


@pytest.mark.parametrize("units_of", [lambda: recipe("systemd:", "To run 'export reconcile' each night,"), nightly])
def test_systemd_takes_the_units(tmp_path: Path, units_of: Callable[[], str]) -> None:
    need("systemd-analyze")
    service, _, timer = units_of().partition("[Timer]")
    units = tmp_path / "svcctl-export.service", tmp_path / "svcctl-export.timer"
    units[0].write_text(service.replace("ExecStart=svcctl", f"ExecStart={add_command(tmp_path)}"))
    units[1].write_text("[Timer]" + timer)
    done = subprocess.run(["systemd-analyze", "verify", *map(str, units)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_command_of_the_timer_that_reconciles_runs(service: Shell, tmp_path: Path) -> None:
    written = nightly().replace("\\\n", " ")
    (line,) = re.findall("^ExecStart=svcctl -p prod (.*)$", written, re.MULTILINE)
    shell = Shell(tmp_path, {"SVCCTL_DATA": service.environment["SVCCTL_DATA"]})
    exported = shell("export", "from auth.all", "--from", "1ad", "--state", "auth", "-o", "{start:%F-%H}.csv")
    assert exported.returncode == 0, exported.stderr
    done = shell(*shlex.split(line.replace("/var/lib/node_exporter", str(tmp_path))))
    assert (done.returncode, done.stdout) == (0, "")
    text = (tmp_path / "auth-late.prom").read_text()
    alert = re.search(r"Prometheus:\s(\w+) > 0", topics.read("export"))
    assert alert is not None
    assert f'{alert[1]}{{export="auth"}} 0\n' in text


def test_the_cron_job_of_kubernetes_is_yaml_and_its_command_an_export(service: Shell, tmp_path: Path) -> None:
    job = yaml.safe_load(recipe("Kubernetes:", "\nWindows,"))
    assert (job["kind"], job["spec"]["concurrencyPolicy"]) == ("CronJob", "Forbid")
    [container] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    _, *arguments = (word.replace("s3://events", str(tmp_path)) for word in container["command"])
    shell = Shell(tmp_path, {"SVCCTL_DATA": service.environment["SVCCTL_DATA"]})
    done = shell(*arguments, "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"20..-..-..T..:..:..Z,20..-..-..T..:00:00Z,.*/auth/.*\.csv\.gz", done.stdout.split("\n")[1])
