"""The scripts of `svcctl help library` run as they are printed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.shells import Shell

from svcctl.cli.help import topics


def scripts() -> list[str]:
    """The blocks that are indented as code is."""
    blocks = re.findall(r"(?m)(?:^    .*\n(?:\n(?=    ))?)+", topics.read("library") + "\n")
    return [re.sub("(?m)^    ", "", block) for block in blocks if block.startswith("    import ")]


@pytest.fixture(scope="module")
def environment(service: Shell, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with the profile prod, which has the reseller's credentials, and with its domain acme."""
    home = tmp_path_factory.mktemp("library")
    made = service("-p", "local-reseller", "domain", "create", "acme", "--plan", "basic")
    owned = service("service", "accounts", "user", "owner@acme.example", "acme@demo", "--role", "OWNER")
    assert (made.returncode, owned.returncode) == (0, 0), made.stderr + owned.stderr
    credentials = json.loads((service.home / "data" / "credentials.json").read_text())["local-reseller"]
    profiles = home / "profiles.yaml"
    fields = {"base_url": "http://localhost", "socket": str(service.home / "data" / "service.sock"), **credentials}
    lines = "".join(f"    {name}: {value}\n" for name, value in fields.items() if name != "token")
    profiles.write_text(f"profiles:\n  prod:\n{lines}")
    profiles.chmod(0o600)
    return {**service.environment, "SVCCTL_CONFIG": str(profiles), "HOME": str(home)}


@pytest.mark.parametrize("script", scripts(), ids=lambda script: re.sub(r"\W+", "-", script)[:60])
def test_a_script_runs_as_it_is_printed(script: str, environment: dict[str, str]) -> None:
    home = Path(environment["HOME"])
    variables = environment | {"SERVICE_URL": "https://service.example", "SERVICE_TOKEN": "t"}
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, env=variables, cwd=home, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    if "parquet" in script:
        from pyarrow import parquet

        assert parquet.read_metadata(home / "day.parquet").num_rows > 0
