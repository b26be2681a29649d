"""Who may import whom, and what a command may not load."""

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from support.scripted import Serve, http, ok

import svcctl

ROOT = Path(svcctl.__file__).parent
TESTS = Path(__file__).parents[1]
FLOORS = (
    {"errors"},
    {"words", "io"},
    {"dates", "storage"},
    {"api"},
    {"profiles", "terminal", "exports"},
    {"service"},
    {"library", "cli"},
    {"__main__"},
)
"""The rooms of the house, from the ground up: imports run downward only, also within functions."""
ALLOWED = {
    "words": {"errors"},
    "io": {"errors"},
    "dates": {"io", "words", "errors"},
    "storage": {"io", "words", "errors"},
    "api": {"dates", "io", "words", "errors"},
    "profiles": {"api", "dates", "io", "words", "errors"},
    "terminal": {"api", "dates", "io", "words", "errors"},
    "exports": {"storage", "api", "dates", "io", "words", "errors"},
    "service": {
        *("storage", "dates", "io", "words", "errors", "profiles.settings"),
        *("api.destinations", "api.foreign_functions", "api.loads", "api.models", "api.retry"),
    },
    "cli": {
        "exports",
        "terminal",
        "profiles",
        "api",
        "dates",
        "storage",
        "io",
        "words",
        "errors",
        "service.process",
        "service.settings",
    },
    "library": {"profiles", "api", "dates", "io", "errors", "service.process"},
    "": {"library", "api.columns", "api.models", "errors"},
    "cli.commands.service": {"service"},
    "cli.completion.names": {"service"},
    "__main__": {"cli"},
}
"""What each room may import of the others. Rows of the places that a module is in hold together."""
# Where each library is used; a library that is not named here may be used anywhere.
LIBRARIES = {
    "alembic": {"service.state.migrations"},
    "deltalake": {"service.engines.lake"},
    "duckdb": {"service.engines.duckdb", "service.loading", "service.rendering"},
    "grpc": {"service.engines.spark"},
    "jwt": {"service.http.auth"},
    "lark": {"service.language"},
    "platformdirs": {"io.home"},
    "pyspark": {"service.engines.spark"},
    "rich": {"terminal"},
    "psycopg": {"service.state.postgresql"},
    "sqlalchemy": {
        *(
            "service.accounts",
            "service.jobs.leases",
            "service.jobs.job_table",
            "service.jobs.step_log",
            "service.queries.saved_queries",
            "service.state",
        ),
    },
    "sqlglot": {"service.engines", "service.language"},
    "starlette": {"service.http"},
    "typer": {"cli"},
    "uvicorn": {"service.server", "service.http.connection"},
    "yaml": {"io.yaml_text"},
}


@cache
def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports(path: Path) -> set[str]:
    """Every module that a file imports; `from a import b` counts as `a.b` where that is a module of svcctl."""
    found = set()
    known = {f"svcctl.{name}".rstrip(".") for name in modules()}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & known
            found |= inner or {node.module}
    return found


def within(name: str, part: str) -> bool:
    return name == part or (part != "" and name.startswith(part + "."))


@pytest.mark.parametrize("name", modules())
def test_a_module_imports_only_what_its_place_allows(name: str) -> None:
    allowed = set().union(*(parts for place, parts in ALLOWED.items() if within(name, place)))
    ours = {found.removeprefix("svcctl.") for found in imports(modules()[name]) if found.startswith("svcctl.")}
    room = name.partition(".")[0]
    assert {found for found in ours if not any(within(found, part) for part in (room, *allowed))} == set()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_used_only_where_it_belongs(library: str) -> None:
    users = {name for name, path in modules().items() if library in {one.split(".")[0] for one in imports(path)}}
    assert {name for name in users if not any(within(name, room) for room in LIBRARIES[library])} == set()


@pytest.mark.parametrize("name", [name for name in modules() if within(name, "exports")])
def test_an_export_reads_no_date_that_was_typed(name: str) -> None:
    assert imports(modules()[name]) & {"svcctl.dates.shorthand", "svcctl.dates.range"} == set()


@pytest.mark.parametrize(
    ("written", "places"),
    [
        (r"\bdate(?:time)?\(1970|fromtimestamp\(0\b", {"dates.epochs", "io.spreadsheet"}),  # io is below dates
        (r"(?:time|clock|timestamp)\(\) \* 1_?000\b", set[str]()),
        (r"[\"']\*{3,}[\"']", {"words"}),
        (r"[\"'], …[\"']| and \{len\(\w+\) - ", {"words"}),
    ],
    ids=["the epoch", "milliseconds of a clock", "masks of secrets", "lists of some names"],
)
def test_a_rule_is_in_one_module(written: str, places: set[str]) -> None:
    users = {name for name, path in modules().items() if re.search(written, path.read_text(encoding="utf-8"))}
    assert users == places


def test_zones_are_read_only_in_the_identity_of_an_export() -> None:
    readers = {name for name, path in modules().items() if "named_zone" in path.read_text(encoding="utf-8")}
    assert {name for name in readers if within(name, "exports")} == {"exports.identity"}


def test_requests_jobs_and_destinations_know_an_engine_by_its_protocol_only() -> None:
    for_all = ("service.engines", "service.engines.table_rules")
    engines = {name for name in modules() if within(name, "service.engines") and name not in for_all}
    users = {
        name
        for name, path in modules().items()
        if any(within(one.removeprefix("svcctl."), engine) for one in imports(path) for engine in engines)
    }
    rooms = ("engines", "server", "rendering", "loading", "state.folder_identity")
    assert {name for name in users if not any(within(name, f"service.{room}") for room in rooms)} == set()


def test_the_check_of_jobs_shares_no_code_with_the_delivery() -> None:
    """Only so can it find the mistakes of the delivery; also by way of other modules."""
    sender = ("service.jobs.delivery", "service.jobs.batches", "service.destinations")
    checker = [f"service.verification.{name}" for name in CHECKER]
    reached, left = set[str](), set(checker)
    while left:
        reached |= left
        found = {one.removeprefix("svcctl.") for name in left for one in imports(modules()[name])}
        left = (found & modules().keys()) - reached
    assert reached > set(checker)
    assert {name for name in reached if any(within(name, part) for part in sender)} == set()


CHECKER = ("comparison", "file_rows", "findings", "kafka_topic", "keyed_rows", "stored_files")
"""The modules that read destinations back, in the package `service/verification/`."""


def arrows(room: Callable[[str], str]) -> dict[str, set[str]]:
    """Which rooms each room imports from; `room` names the one that a module is in, "" where it has none."""
    found: dict[str, set[str]] = {}
    for name, path in modules().items():
        ours = {one.removeprefix("svcctl.") for one in imports(path) if one.startswith("svcctl.")}
        found.setdefault(room(name), set()).update(room(one) for one in ours)
    return {name: others - {name, ""} for name, others in found.items() if name}


def test_files_that_contributing_names_are_there() -> None:
    text = (TESTS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w./]+(?:\.(?:py|lark|txt|md|toml)|/))`", text)
    known = [f"/{path.relative_to(TESTS.parent)}" for root in (ROOT, TESTS) for path in root.rglob("*")]
    known += [f"/{path.name}" for path in TESTS.parent.iterdir()]
    assert [name for name in named if not any(one.endswith(f"/{name.rstrip('/')}") for one in known)] == []


def folders(root: Path) -> set[str]:
    """The folders below a root that hold modules, "" for the root itself."""
    return {path.parent.relative_to(root).as_posix() for path in root.rglob("*.py")}


def test_tests_are_in_the_folder_of_what_they_test() -> None:
    """The tests of one module may be a folder, too: `commands/job.py` is tested in `commands/job/`."""
    outside = {folder for folder in folders(TESTS) if folder.split("/")[0] in ("tools", "peers", "support", "system")}
    modules_as_folders = {path.relative_to(ROOT).with_suffix("").as_posix() for path in modules().values()}
    assert folders(TESTS) - outside <= folders(ROOT) | modules_as_folders


def test_imports_run_downward() -> None:
    floors = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    found = arrows(lambda name: name.partition(".")[0])
    assert set(found) == set(floors)
    assert {(room, other) for room in found for other in found[room] if floors[other] >= floors[room]} == set()


def test_modules_never_import_each_other_in_a_circle() -> None:
    TopologicalSorter(arrows(lambda name: name)).prepare()


@pytest.mark.parametrize("room", ["service", "cli"])
def test_folders_of_a_room_never_import_each_other_in_a_circle(room: str) -> None:
    folders = {f"{room}.{path.name}" for path in (ROOT / room).iterdir() if path.is_dir()}
    TopologicalSorter(arrows(lambda name: next((one for one in folders if within(name, one)), ""))).prepare()


@pytest.mark.parametrize("name", [name for name in modules() if within(name, "api")])
def test_the_client_library_needs_three_small_packages_and_nothing_else(name: str) -> None:
    outside = {found.split(".")[0] for found in imports(modules()[name])} - set(sys.stdlib_module_names)
    assert outside <= {"certifi", "idna", "msgpack", "svcctl"}


def test_each_listing_names_the_type_of_its_models() -> None:
    """`Listing[Any]` would hide from the type checker which attributes a model has."""
    found = [
        (name, node.lineno)
        for name, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Subscript) and ast.unparse(node) == "Listing[Any]"
    ]
    assert found == []


def test_commands_never_import_each_other_but_within_a_noun() -> None:
    across = {
        (name, found)
        for name in modules()
        if within(name, "cli.commands")
        for found in imports(modules()[name])
        if found.startswith("svcctl.cli.commands.") and name.split(".")[:3] != found.split(".")[1:4]
    }
    assert across == set()


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--version"], {"rich", "yaml", "duckdb", "pyarrow", "sqlalchemy", "sqlglot", "msgpack"}),
        (["--help"], {"rich", "yaml", "duckdb", "pyarrow", "sqlalchemy", "sqlglot", "msgpack"}),
        (["range", "--from", "2h"], {"rich", "duckdb", "pyarrow", "sqlalchemy", "sqlglot"}),
        (["export", "--help"], {"rich", "yaml", "duckdb", "pyarrow", "sqlglot", "platformdirs", "zstandard"}),
        (["help", "dates"], {"rich", "yaml", "duckdb", "pyarrow", "sqlalchemy", "sqlglot", "msgpack"}),
        (["help", "formats"], {"rich", "yaml", "duckdb", "pyarrow", "sqlalchemy", "sqlglot", "msgpack"}),
        (["complete", "jobs"], {"rich", "duckdb", "pyarrow", "sqlalchemy", "sqlglot"}),
        (["help", "environment"], {"rich", "yaml", "duckdb", "pyarrow", "sqlalchemy", "sqlglot", "msgpack"}),
        (["service", "accounts", "list", "keys"], {"rich", "alembic", "duckdb", "pyarrow", "sqlglot", "lark"}),
        (["service", "queries", "list"], {"rich", "alembic", "duckdb", "pyarrow", "sqlglot", "lark"}),
        (["help", "query-language"], {"rich", "yaml", "duckdb", "pyarrow", "sqlalchemy", "sqlglot", "lark"}),
    ],
)
def test_a_command_loads_only_what_it_needs(arguments: list[str], absent: set[str], tmp_path: Path) -> None:
    assert loaded_by(arguments, {"HOME": str(tmp_path), "PATH": ""}) & absent == set()


def loaded_by(arguments: list[str], environment: dict[str, str]) -> set[str]:
    """The packages that are loaded after a command has succeeded in a fresh process."""
    script = (
        "import sys; from svcctl.cli.main import run\n"
        f"code = run({arguments!r})\n"
        "print(code, *sorted({name.split('.')[0] for name, loaded in sys.modules.items() if loaded}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    code, *loaded = done.stderr.split()
    assert code == "0"
    return set(loaded)


FOREIGN = {
    *("httpx", "httpcore", "h11", "anyio", "certifi", "asyncio", "rich", "pygments", "click"),
    *("yaml", "msgpack", "xml", "duckdb", "pyarrow", "platformdirs"),
}
"""Packages that a plain request to a service on this machine needs nothing of."""


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ("job list", ok('{"status":0,"object":[{"id":"a","status":"RUNNING"}]}')),
        ("domain list", ok('[{"name":"a@demo","plan":"p","status":"Active"}]')),
        ("query t --from 1h", http("200 OK", "a,b\n1,2\n")),
        ("query t --from 1h -f ndjson", http("200 OK", '{"a":1}\n')),
    ],
)
def test_a_request_loads_no_package_that_it_does_not_use(
    arguments: str, answer: bytes, serve: Serve, tmp_path: Path
) -> None:
    assert loaded_by(arguments.split(), access(tmp_path, serve(answer).url)) & FOREIGN == set()


SPARED = {
    *("httpx", "ssl", "_ssl", "email", "urllib.request", "http.client", "http.cookiejar", "logging", "http", "idna"),
    *("secrets", "csv", "svcctl.io.yaml_text", "svcctl.service.settings"),
    *("svcctl.service.hosts.allowed_hosts", "svcctl.api.wire.proxies", "svcctl.api.wire.tunnels"),
}
"""Modules of which a list of jobs of a service on this machine needs nothing."""


def test_a_list_of_jobs_loads_no_module_that_it_does_not_use(serve: Serve, tmp_path: Path) -> None:
    environment = access(tmp_path, serve(ok('{"status":0,"object":[{"id":"a","status":"RUNNING"}]}')).url)
    modules = modules_of(["job", "list"], environment)
    assert ("svcctl.api.client" in modules, SPARED & modules) == (True, set())


OTHERS = {
    *("api.destinations", "api.follow", "api.job_names", "api.jobs", "api.loads", "api.models", "api.own_service"),
    *("cli.apply", "cli.columns", "cli.listing", "cli.commands.job"),
    *(f"cli.commands.query.{name}" for name in ("every", "files", "first_rows", "launch")),
    *("terminal.charts", "terminal.external_sort", "terminal.progress", "terminal.screen"),
}
"""Modules of svcctl of which a query of a few rows, printed in a pipe, needs nothing."""


@pytest.mark.parametrize(
    ("format_", "answer", "reader"),
    [
        ("csv", http("200 OK", "a,b\n1,2\n"), "delimited"),
        ("tsv", http("200 OK", "a\tb\n1\t2\n"), "delimited"),
        ("ndjson", http("200 OK", '{"a":1}\n'), "lines"),
        ("xml", http("200 OK", "<r><a>1</a></r>"), "markup"),
    ],
)
def test_a_query_loads_the_reader_of_its_format_and_no_module_that_it_does_not_use(
    format_: str, answer: bytes, reader: str, serve: Serve, tmp_path: Path
) -> None:
    arguments = ["query", "from t", "--from", "1h", "-f", format_]
    modules = modules_of(arguments, access(tmp_path, serve(answer).url))
    readers = {
        name for name in ("delimited", "documents", "lines", "markup") if f"svcctl.api.formats.{name}" in modules
    }
    assert (readers, (SPARED - {"csv"}) & modules, {f"svcctl.{name}" for name in OTHERS} & modules) == (
        {reader},
        set(),
        set(),
    )


def modules_of(arguments: list[str], environment: dict[str, str]) -> set[str]:
    """The modules that are loaded after a command has succeeded in a fresh process."""
    script = f"import sys; from svcctl.cli.main import run; print(run({arguments!r}), *sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    code, *modules = done.stderr.split()
    assert code == "0"
    return set(modules)


def access(home: Path, url: str) -> dict[str, str]:
    """The environment of a command that asks a service."""
    return {
        "HOME": str(home),
        "PATH": "",
        "SVCCTL_CONFIG": str(home / "none.yaml"),
        "SVCCTL_DATA": str(home / "data"),
        "SVCCTL_BASE_URL": url,
        "SVCCTL_API_KEY": "k",
        "SVCCTL_API_SECRET": "s",
    }


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ("job watch --max-time 0.1", ok('{"status":0,"object":[{"id":"a","status":"RUNNING"}]}')),
        ("query t --from 1h --every 0.1 --max-time 0.1", http("200 OK", "a,b\n1,2\n")),
        ("--quiet export 'from t' --from 2024-01-31 --to 1h -o OUT", http("200 OK", "a,b\n1,2\n")),
    ],
)
def test_long_work_in_a_pipe_loads_no_displays(arguments: str, answer: bytes, serve: Serve, tmp_path: Path) -> None:
    words = shlex.split(arguments.replace("OUT", str(tmp_path / "out.csv")))
    assert "rich" not in loaded_by(words, access(tmp_path, serve(answer).url))


def test_a_service_loads_what_reads_or_writes_rare_files_only_for_one() -> None:
    script = (
        "import sys, svcctl.service.server; print({'xlsxwriter', 'pyarrow.parquet', 'pyarrow.fs'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_what_is_loaded_is_hardly_searched_for_garbage() -> None:
    script = (
        "import gc, os, sys\n"
        "sys.argv[1:] = ['help', 'dates']\n"
        "from svcctl.__main__ import main\n"
        "searches = lambda: sum(each['collections'] for each in gc.get_stats())\n"
        "before, end = searches(), os._exit\n"
        "os._exit = lambda code: (print(searches() - before, file=sys.stderr, flush=True), end(code))\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stderr) <= 2


def test_the_version_loads_no_command_line() -> None:
    script = (
        "import os, sys\n"
        "sys.argv[1:] = ['--version']\n"
        "from svcctl.__main__ import main\n"
        "os._exit = lambda code: print(code, *sys.modules, file=sys.stderr)\n"
        "sys.modules['svcctl.cli.main'] = None  # loading it would fail\n"
        "try:\n    main()\nexcept ImportError:\n    pass"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    code, *loaded = done.stderr.split()
    assert code == "0"
    assert set(loaded) & {"typer", "svcctl.cli.context", "subprocess", "json"} == set()
