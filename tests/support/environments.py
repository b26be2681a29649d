"""Odd environments, and commands that must end with a readable message in each of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import pytest

from support.shells import SVCCTL

NOBODY = (
    *("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)
"""A command that runs another as a user without an account, who can read Python but write nowhere."""
POWERLESS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""A command that runs another as the current user, but without the right to ignore the modes of files."""

Prepare = Callable[[Path], object]


def nothing(home: Path) -> None:
    """Leave the home as it is: empty."""


@dataclass(frozen=True)
class Environment:
    """What is odd: variables ("{home}" means the home; None: not set), files, closed streams, or the user."""

    variables: Mapping[str, str | None] = field(default_factory=dict)
    prepare: Prepare = nothing
    closed: tuple[int, ...] = ()
    by: tuple[str, ...] = ()
    """The command that starts another with fewer rights, if the tests run as root."""
    directory: str = "{home}"


@dataclass(frozen=True)
class Ended:
    code: int
    out: bytes
    err: bytes

    @property
    def lines(self) -> list[str]:
        return self.err.decode("utf-8", "replace").splitlines()


BASE: dict[str, str | None] = {
    "HOME": "{home}",
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "SVCCTL_BASE_URL": "http://127.0.0.1:1",
    "SVCCTL_API_KEY": "k",
    "SVCCTL_API_SECRET": "s",
    "SVCCTL_RETRIES": "0",
}


def odd(name: str) -> Environment:
    """An environment by its name; skips the test if the machine does not support it."""
    environment = ENVIRONMENTS[name]
    if environment.by and (os.getuid() != 0 or shutil.which(environment.by[0]) is None):
        pytest.skip("needs rights to give up")
    if "LOCPATH" in environment.variables and latin_1() is None:
        pytest.skip("localedef and its sources are not installed")
    return environment


def run(
    environment: Environment, arguments: tuple[str | bytes, ...], home: Path, stdin: bytes = b"", **more: str | None
) -> Ended:
    """Run a command in an environment."""
    (home / "file").write_text("", encoding="utf-8")
    environment.prepare(home)
    given = {**BASE, **environment.variables, **more}
    locales = str(latin_1()) if "LOCPATH" in given else ""
    variables = {
        name: text.replace("{home}", str(home)).replace("{latin-1}", locales)
        for name, text in given.items()
        if text is not None
    }
    closing = " ".join(f"{number}{'<' if number == 0 else '>'}&-" for number in environment.closed)
    done = subprocess.run(
        [
            *("/bin/sh", "-c", f'cd "$1"; shift; exec "$@" {closing}', "sh"),
            *(environment.directory.replace("{home}", str(home)), *environment.by, *SVCCTL, *arguments),
        ],
        input=stdin,
        capture_output=True,
        env=variables,
        cwd="/",
        timeout=60,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@cache
def latin_1() -> str | None:
    """The folder of a locale in ISO-8859-1; None if it cannot be made."""
    folder = mkdtemp(prefix="svcctl-locales-")
    try:
        subprocess.run(
            ["localedef", "-i", "en_US", "-f", "ISO-8859-1", f"{folder}/en_US.ISO-8859-1"],
            capture_output=True,
            check=False,  # it warns about the charset, and exits 1
        )
    except FileNotFoundError:
        return None
    return folder if any(Path(folder).iterdir()) else None


def writes(name: str, text: str | bytes) -> Prepare:
    """Put a file into the home, readable by its user only."""

    def prepare(home: Path) -> None:
        path = home / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        path.chmod(0o600)

    return prepare


def folder(name: str) -> Prepare:
    def prepare(home: Path) -> None:
        (home / name).parent.mkdir(mode=0o700, parents=True)
        (home / name).mkdir()

    return prepare


def closed_folder(home: Path) -> None:
    (home / "closed").mkdir(mode=0)


STREAMS = {0: "stdin", 1: "stdout", 2: "stderr"}
LOCAL: dict[str, str | None] = {"SVCCTL_BASE_URL": None, "SVCCTL_DATA": "{home}/data"}
DAMAGED: Mapping[str, str | bytes] = {
    "nothing": "",
    "a list": "[]",
    "null": "null",
    "a number": '{"local": 5, "local-reseller": 5}',
    "a text": '"x"',
    "no UTF-8": b"\xff\xfe",
    "depth": "[" * 200_000,
    "half": '{"local": {"api_key": "a',
    "other types": '{"local": {"api_key": 1, "api_secret": [], "token": null}, "local-reseller": {}}',
}
CLOSED = {
    "closed " + ", ".join(STREAMS[number] for number in numbers): Environment(closed=numbers)
    for count in (1, 2, 3)
    for numbers in combinations(STREAMS, count)
}
PLACES = {
    "home below a file": Environment({"HOME": "{home}/file/x"}),
    "home in /proc": Environment({"HOME": "/proc"}),
    "no home and no user": Environment({"HOME": None}, by=NOBODY),
    "home that may not be entered": Environment({"HOME": "{home}/closed/x"}, closed_folder, by=POWERLESS),
    "no home, local": Environment({"HOME": None, "SVCCTL_BASE_URL": None}, by=NOBODY),
    "local in /proc": Environment({**LOCAL, "SVCCTL_DATA": "/proc"}),
    "local below a file": Environment({**LOCAL, "SVCCTL_DATA": "{home}/file/x"}),
    "local in a file": Environment({**LOCAL, "SVCCTL_DATA": "{home}/file"}),
    "local with a long name": Environment({**LOCAL, "SVCCTL_DATA": "{home}/" + "x" * 300}),
    "local with a long path": Environment({**LOCAL, "SVCCTL_DATA": "{home}/" + "/".join(["x" * 100] * 50)}),
    "local that may not be entered": Environment(
        {**LOCAL, "SVCCTL_DATA": "{home}/closed/x"}, closed_folder, by=POWERLESS
    ),
    "config below a file": Environment({"SVCCTL_CONFIG": "{home}/file/x"}),
    "config in /proc": Environment({"SVCCTL_CONFIG": "/proc/x"}),
    "config is a folder": Environment({"SVCCTL_CONFIG": "{home}"}),
    "config that may not be entered": Environment({"SVCCTL_CONFIG": "{home}/closed/x"}, closed_folder, by=POWERLESS),
    "config with a long name": Environment({"SVCCTL_CONFIG": "{home}/" + "x" * 300}),
    "config is not there": Environment({"SVCCTL_CONFIG": "{home}/none.yaml"}),
    "config of somebody unknown": Environment({"SVCCTL_CONFIG": "~nobody-here/x"}),
    "states below a file": Environment({"SVCCTL_STATE": "{home}/file/x"}),
    "states in /proc": Environment({"SVCCTL_STATE": "/proc"}),
    "cache below a file": Environment({"XDG_CACHE_HOME": "{home}/file/x"}),
    "a directory of another": Environment(by=NOBODY),
    "states that may not be entered": Environment({"SVCCTL_STATE": "{home}/closed"}, closed_folder, by=POWERLESS),
    "in /proc": Environment(directory="/proc"),
    "a long TMPDIR": Environment({**LOCAL, "SVCCTL_DATA": "{home}/" + "x" * 120, "TMPDIR": "{home}/file/x"}),
}
CODECS = ("ascii", "latin-1:strict", "utf-16")
"""Values of PYTHONIOENCODING, none of which may change the output."""
LOCALES = {
    "C": Environment({"LANG": None, "LC_ALL": "C"}),
    "no locale": Environment({"LANG": None}),
    "C without UTF-8": Environment({"LANG": None, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    **{f"streams in {name}": Environment({"PYTHONIOENCODING": name}) for name in CODECS},
    "streams in an unknown encoding": Environment({"LANG": "xx_XX.UNKNOWN"}),
    "ISO-8859-1": Environment({"LANG": None, "LC_ALL": "en_US.ISO-8859-1", "LOCPATH": "{latin-1}"}),
}
FILES = {
    **{
        f"credentials hold {name}": Environment(LOCAL, writes("data/credentials.json", text))
        for name, text in DAMAGED.items()
    },
    "credentials are a folder": Environment(LOCAL, folder("data/credentials.json")),
    **{
        f"config holds {name}": Environment({}, writes(".config/svcctl/config.yaml", text))
        for name, text in DAMAGED.items()
    },
    **{
        f"config has {text}": Environment({}, writes(".config/svcctl/config.yaml", text))
        for text in (
            "profiles: {1: {base_url: 'http://x'}}",
            "default: [a]\nprofiles: {}",
            "default: {a: b}",
            "default: 5",
            "profiles: {a: {headers: {apikey: [1]}}}",
            "profiles: {a: {paths: {query: null}}}",
            "profiles: {a: {base_url: 2024-01-01}}",
            "profiles: {[a]: {}}",
            "? {a: b}\n: c",
            "&a [*a]",
            'profiles: {a: {base_url: http://x, ca_bundle: "a\\0b"}}',
            "!!python/object:os.system {}",
        )
    },
    **{
        f"state holds {name}": Environment({}, writes(".local/state/svcctl/exports/x.json", text))
        for name, text in DAMAGED.items()
    },
    "state is a folder": Environment({}, folder(".local/state/svcctl/exports/x.json")),
    "the lock of a state is a folder": Environment({}, folder(".local/state/svcctl/exports/x.lock")),
    "the lock is a folder": Environment(LOCAL, folder("data/service.lock")),
    "the log is a folder": Environment(LOCAL, folder("data/service.log")),
    "the lock holds words": Environment(LOCAL, writes("data/service.lock", "words")),
    "the socket is a file": Environment(LOCAL, writes("data/service.sock", "")),
    "the state of the service is words": Environment(LOCAL, writes("data/state.db", "words " * 1000)),
    "the state of the service is a folder": Environment(LOCAL, folder("data/state.db")),
}
ENVIRONMENTS = {**CLOSED, **PLACES, **LOCALES, **FILES}

LONG = "x" * 300
QUERY = ("query", "from t where user = 'é'", "--from", "1h")
COMMANDS: dict[str, tuple[tuple[str | bytes, ...], bytes]] = {
    "nothing": ((), b""),
    "--help": (("--help",), b""),
    "--version": (("--version",), b""),
    "a noun's help": (("job", "--help"), b""),
    "a noun alone": (("job",), b""),
    "a topic": (("help", "dates"), b""),
    "a mistake": (("qery", "é"), b""),
    "query": (QUERY, b""),
    "a dry run": ((*QUERY, "--dry-run"), b""),
    "a query on stdin": (("query", "-", "--from", "1h", "--dry-run"), "from t where user = 'é'".encode()),
    "a query in Latin-1": (("query", "-", "--from", "1h", "--dry-run"), b"from t where user = '\xe9'"),
    "an argument in Latin-1": (("query", b"from t where user = '\xe9'", "--from", "1h", "--dry-run"), b""),
    "to a file": ((*QUERY, "-o", "out.csv"), b""),
    "to a file below a file": ((*QUERY, "-o", "file/out.csv"), b""),
    "to a file with a long name": ((*QUERY, "-o", LONG), b""),
    "to a file in Latin-1": ((*QUERY, "-o", b"\xe9.csv"), b""),
    "to a file in /proc": ((*QUERY, "-o", "/proc/x/y"), b""),
    "from a file with a long name": (("query", "-F", LONG, "--from", "1h"), b""),
    "IDs on stdin": (("job", "stop", "-"), b"a b"),
    "IDs on stdin in Latin-1": (("job", "stop", "-"), b"\xe9"),
    "an ID in Latin-1": (("job", "show", b"\xe9"), b""),
    "a question": (("job", "rm", "x"), b"y\n"),
    "a list": (("job", "list"), b""),
    "domains": (("domain", "show", "é@r"), b""),
    "lint": (("role", "lint", "-"), "name: é".encode()),
    "range": (("range", "--from", "1h"), b""),
    "profiles": (("profile", "list"), b""),
    "a profile": (("profile", "show"), b""),
    "a profile with a long name": (("profile", "show", LONG), b""),
    "a profile of no UTF-8": (("profile", "set", b"\xe9", "base_url=https://x"), b""),
    "a profile set": (("profile", "set", "é", "base_url=https://x"), b""),
    "a secret": (("profile", "set", "x", "base_url=https://x", "api_secret=-"), b"s\xe9\n"),
    "a profile used": (("profile", "use", "local"), b""),
    "a profile removed": (("profile", "rm", "a"), b"y\n"),
    "a profile checked": (("profile", "check"), b""),
    "another config": (("--config", "none.yaml", "profile", "list"), b""),
    "a config with a long name": (("--config", LONG, "profile", "list"), b""),
    "export": (("export", "from t", "--from", "2h", "--to", "1h", "--window", "1h", "-o", "x.csv"), b""),
    "export with a state": (
        ("export", "from t", "--from", "2h", "--window", "1h", "-o", "{start}.csv", "--state", "x"),
        b"",
    ),
    "export with a long state": (
        ("export", "from t", "--from", "2h", "--window", "1h", "-o", "{start}.csv", "--state", LONG),
        b"",
    ),
    "export status": (("export", "status", "x"), b""),
    "api": (("api", "GET", "/é"), b""),
    "api with a body": (("api", "POST", "/x", "-d", "@-"), b"\xff"),
    "complete profiles": (("complete", "profiles"), b""),
    "complete states": (("complete", "states"), b""),
    "complete jobs": (("complete", "jobs"), b""),
    "completion": (("completion", "bash", "--install"), b""),
    "service status": (("service", "status"), b""),
    "service stop": (("service", "stop"), b""),
    "service reset": (("service", "reset", "--yes"), b""),
    "accounts": (("service", "accounts", "list", "keys"), b""),
    "queries": (("service", "queries", "set", "é", "from t"), b""),
    "a long query name": (("service", "queries", "set", LONG, "from t"), b""),
    "a query of no UTF-8": (("service", "queries", "set", "x", b"from \xff"), b""),
    "everything long": (("query", "x" * 100_000, "--from", "y" * 100_000), b""),
}
KNOWN_CODES = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130, 141, 143}


def complaint(environment: Environment, command: str, ended: Ended) -> str | None:
    """What is wrong with the end of a command; None if nothing is wrong."""
    text = ended.err.decode("utf-8", "replace")
    for bad in ("Traceback", "defect", "Exception ignored", "Fatal Python"):
        if bad in text or bad.encode() in ended.out:
            return f"it says {bad}"
    if ended.code not in KNOWN_CODES:
        return f"it exits {ended.code}"
    errors = [line for line in ended.lines if line.startswith("svcctl: error:")]
    if ended.code and 2 not in environment.closed and len(errors) != 1 and command != "IDs on stdin":
        usage = command == "a noun alone" and text.startswith("Usage:")
        return None if usage else f"it has {len(errors)} errors: {text}"
    return None


def pairs(random: Random, count: int) -> list[tuple[str, str]]:
    """Random pairs of an environment and a command."""
    return random.sample([(environment, command) for environment in ENVIRONMENTS for command in COMMANDS], count)
