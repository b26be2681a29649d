"""The request of `svcctl query`: text, variables, dates and credentials, against the real service."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from support.shells import DAY, Shell


def test_text_comes_from_an_argument_a_file_or_standard_input(service: Shell, tmp_path: Path) -> None:
    text = 'from sample // a comment\nwhere name = "plain"\nselect n'
    (tmp_path / "query.q").write_text(text)
    for arguments, stdin in ((["-"], text), (["-F", str(tmp_path / "query.q")], ""), ([text], "")):
        done = service("query", *arguments, *DAY, stdin=stdin)
        assert (done.returncode, done.stdout) == (0, "n\n1\n")


def test_variables_are_quoted_literals(service: Shell) -> None:
    query = "from sample where name = {{name}} select n"
    done = service("query", query, *DAY, "--var", 'name=comma, "quote"')
    assert done.stdout == "n\n9007199254740993\n"
    done = service("query", query, *DAY, "--var", 'name=" or true or name = "')
    assert done.stdout == "n\n"


def test_dates_are_printed_in_the_format_and_zone_asked_for(service: Shell) -> None:
    options = ("--time-zone", "GMT+2", "--date-format", "iso")
    assert service("query", "from sample select eventdate limit 1", *DAY, *options).stdout == (
        "eventdate\n2024-01-31T12:00:00.000+0200\n"
    )
    assert service("query", "from sample select eventdate limit 1", *DAY, *options, "-f", "table").stdout == (
        "eventdate (GMT+2)\n------------------------\n2024-01-31T12:00:00+0200\n"
    )


def test_the_zone_moves_relative_dates_in_every_format(service: Shell) -> None:
    for name in ("csv", "table", "ndjson", "json", "json/compact", "json/simple/compact", "msgpack", "parquet"):
        shown = service("query", "from sample", "--from", "2ad", "--dry-run", "--time-zone", "GMT+14", "-f", name)
        request = json.loads(shown.stdout.split("\n\n")[1])
        if name == "csv":
            assert (request["from"], request["timeZone"]) == ("2ad", "GMT+14")
        else:
            assert (request["from"] + 14 * 3600) % 86400 == 0
            assert "timeZone" not in request


def test_an_end_of_a_zone_counts_from_its_start_where_numbers_are_sent(service: Shell) -> None:
    pair = ("--from", "31/01/2024 23:30:00", "--to", "endday", "--time-zone", "GMT+2", "-f", "ndjson")
    request = json.loads(service("query", "from sample", *pair, "--dry-run").stdout.split("\n\n")[1])
    assert (request["from"], request["to"]) == (1706736600, 1706738399)  # to 2024-01-31 23:59:59 in GMT+2


def test_a_range_has_milliseconds_as_svcctl_prints_them(service: Shell) -> None:
    def names(from_: str, to: str) -> str:
        done = service("query", "from sample select name", "--from", from_, "--to", to)
        return done.stdout + done.stderr

    assert names("2024-01-31 10:00:02.007", "2024-01-31 10:00:02.008") == "name\n[brackets] 漢字 😀\n"
    assert names("1706695202.007", "1706695202.008") == "name\n[brackets] 漢字 😀\n"
    assert names("2024-01-31 10:00:01.001", "2024-01-31 10:00:02.007") == "name\n"
    asked = ("query", "from sample", "--from", "2024-01-31 10:00:02.007", "--to", "1h", "--dest", "donothing")
    job = json.loads(service(*asked, "--dry-run").stdout.split("\n\n")[1])
    assert (job["from"], job["to"]) == (1706695202.007, "1h")


def test_a_dry_run_prints_the_request_and_no_secret(service: Shell) -> None:
    done = service("query", "from sample", "--from", "2h", "--limit", "3", "--dry-run")
    head, body = done.stdout.split("\n\n")
    assert f"\ncontent-length: {len(body.removesuffix(chr(10)))}\n" in head
    assert head.startswith("POST http://localhost/search/query\n")
    assert "x-svc-apikey: ****\n" in head
    assert head.endswith("x-svc-sign: ****")
    assert json.loads(body) == {
        "query": "from sample",
        "from": "2h",
        "to": "now",
        "mode": {"type": "csv"},
        "limit": 3,
        "keepAlive": {"type": "token"},
    }
    secret = json.loads((service.home / "data" / "credentials.json").read_text())["local"]
    assert secret["api_key"] not in done.stdout
    assert secret["api_secret"] not in done.stdout


@pytest.fixture
def strangers(service: Shell, tmp_path: Path) -> Shell:
    """A home with its own profiles, whose requests go to the running service."""
    return Shell(tmp_path, {"SVCCTL_DATA": str(tmp_path / "none")})


def test_a_wrong_secret_is_refused_and_right_credentials_of_every_kind_are_not(
    service: Shell, strangers: Shell
) -> None:
    import jwt

    credentials = json.loads((service.home / "data" / "credentials.json").read_text())["local"]
    socket = str(service.home / "data" / "service.sock")
    token = jwt.encode(
        {"iss": credentials["api_key"], "exp": int(time.time()) + 60}, credentials["api_secret"], algorithm="HS256"
    )
    stale = jwt.encode({"iss": credentials["api_key"], "exp": 1}, credentials["api_secret"], algorithm="HS256")
    cases = [
        ("right", "signature", credentials["api_secret"], 0, ""),
        ("wrong", "signature", "not the secret", 3, "the API key or the signature is wrong"),
        ("bearer", "token", credentials["token"], 0, ""),
        ("stranger", "token", "abc", 3, "the token is not valid"),
        ("jwt", "jwt", token, 0, ""),
        ("stale", "jwt", stale, 3, "the token is not valid"),
    ]
    for name, method, secret, code, message in cases:
        field = "api_secret" if method == "signature" else "token"
        fields = ["base_url=http://localhost", f"socket={socket}", f"auth={method}", f"{field}=-"]
        if method == "signature":
            fields.append(f"api_key={credentials['api_key']}")
        assert strangers("profile", "set", name, *fields, stdin=secret).returncode == 0
        done = strangers("query", "from sample limit 1", *DAY, "-p", name)
        assert done.returncode == code, done.stderr
        assert done.stderr.split(" (")[0].strip() == (f"svcctl: error: {message}" if message else "")
        assert secret not in done.stderr
