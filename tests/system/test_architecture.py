"""Who may import whom, and what a command may not load."""

import ast
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
# What each part may import of svcctl, wherever in a module the import is. All rows hold that name the module or
# a folder of it.
ALLOWED = {
    "": {"svcctl"},
    "errors": set(),
    "encoding": set(),
    "home": {"errors"},
    "extras": {"errors"},
    "files": {"errors"},
    "compression": {"extras"},
    "parquet": {"arrow", "compression", "errors", "extras"},
    "spellings": {"api.suggest"},
    "app": {"errors", "mistakes", "pages", "spellings"},
    "mistakes": {"api.suggest", "api.typed_dates", "completion.places", "errors", "spellings"},
    "exports": {
        *("compression", "errors", "files", "home", "api", "storage", "extras", "parquet", "spellings", "threads"),
        "exports",
    },
    "storage": {"compression", "errors", "extras", "files", "threads", "storage"},
    "api": {"compression", "errors", "api"},
    "terminal": {
        "compression",
        "encoding",
        "errors",
        "files",
        "home",
        "parquet",
        "spellings",
        "terminal",
        "threads",
        "api",
    },
    "inputs": {"encoding", "errors", "home", "api", "inputs"},
    "profiles": {"errors", "files", "home", "api", "profiles"},
    "local_service": {"errors", "extras", "files", "home", "profiles.settings", "service_settings"},
    "service_settings": {"errors", "home"},
    "options": {"api.dates", "api.typed_dates", "completion.words", "errors", "exports.windows"},
    "time_limit": set(),
    "threads": set(),
    "arrow": set(),
    "client_factory": {"api", "completion.cache", "terminal", "profiles"},
    "context": {"errors", "api", "client_factory", "terminal", "profiles", "local_service"},
    "pages": {"pages"},
    "pages.build": {
        "cli",
        "commands",
        "completion.scripts",
        "api",
        "exports.state",
        "local_service",
        "profiles.settings",
        "service_settings",
        "terminal",
    },
    "commands": {
        *("app", "errors", "api", "context", "options", "completion.words", "terminal", "profiles", "inputs"),
        *("local_service", "home", "time_limit", "pages", "commands"),
    },
    "commands.export": {"exports", "commands.export"},
    "commands.service": {"extras", "service", "service_settings", "threads", "commands.service"},
    "commands.completion": {"completion", "files"},
    "completion.words": {"api", "exports.formats", "terminal", "profiles"},
    "completion.places": {"completion.words", "spellings"},
    "completion.shells": {"completion.words", "completion.places", "home"},
    "completion.scripts": {"completion.shells", "cli", "commands"},
    "completion.cache": {"errors", "home"},
    "completion.names": {
        "completion.cache",
        "terminal.records",
        "errors",
        "extras",
        "service.provisioning.seed",
        "service.queries.saved",
        "exports.state",
        "files",
        "pages",
        "api.job_states",
        "api.outline",
        "api.own_service",
        "context",
        "profiles",
        "local_service",
    },
    "cli": {
        "app",
        "mistakes",
        "pages",
        "spellings",
        "encoding",
        "errors",
        "context",
        "options",
        "completion.words",
        "terminal",
        "commands",
        "",
    },
    "service.destinations": {"storage"},
    "service.engines.lake": {"storage"},
    "service": {
        "arrow",
        "errors",
        "extras",
        "files",
        "service",
        "api.dates",
        "api.job_states",
        "api.models",
        "api.destinations",
        "api.backoff",
        "api.elsewhere",
        "api.suggest",
        "local_service",
        "service_settings",
        "",
    },
    "__main__": {"cli", "pages", ""},
}
# Where each library is used; a library that is not named here may be used anywhere.
LIBRARIES = {
    "alembic": {"service.migrations"},
    "deltalake": {"service.engines.lake"},
    "duckdb": {"service.engines.duckdb", "service.rendering"},
    "grpc": {"service.engines.spark"},
    "jwt": {"service.http.auth"},
    "lark": {"service.language"},
    "platformdirs": {"home"},
    "pyspark": {"service.engines.spark"},
    "rich": {"terminal"},
    "psycopg": {"service.databases.postgresql"},
    "sqlalchemy": {
        "service.events.same_folder",
        "service.databases",
        "service.jobs.leases",
        "service.jobs.stored",
        "service.migrations",
        "service.provisioning",
        "service.queries.saved",
        "service.schema",
        "service.store",
    },
    "sqlglot": {"service.engines", "service.language"},
    "starlette": {"service.http"},
    "typer": {"app", "cli", "mistakes", "options", "commands", "completion.scripts"},
    "uvicorn": {"service.server", "service.http.connection"},
    "yaml": {"inputs", "profiles"},
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
    ours = {
        found.removeprefix("svcctl").removeprefix(".")
        for found in imports(modules()[name])
        if found.startswith("svcctl")
    }
    assert {found for found in ours if not any(within(found, part) for part in allowed)} == set()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_used_only_where_it_belongs(library: str) -> None:
    users = {name for name, path in modules().items() if library in {one.split(".")[0] for one in imports(path)}}
    assert {name for name in users if not any(within(name, room) for room in LIBRARIES[library])} == set()


def test_requests_jobs_and_destinations_know_an_engine_by_its_protocol_only() -> None:
    engines = {name for name in modules() if within(name, "service.engines") and name != "service.engines"}
    users = {
        name
        for name, path in modules().items()
        if any(within(one.removeprefix("svcctl."), engine) for one in imports(path) for engine in engines)
    }
    rooms = ("service.engines", "service.server", "service.rendering", "service.events")
    assert {name for name in users if not any(within(name, room) for room in rooms)} == set()


def arrows(room: Callable[[str], str]) -> dict[str, set[str]]:
    """Which rooms each room imports from; `room` names the one that a module is in, "" where it has none."""
    found: dict[str, set[str]] = {}
    for name, path in modules().items():
        ours = {one.removeprefix("svcctl.") for one in imports(path) if one.startswith("svcctl.")}
        found.setdefault(room(name), set()).update(room(one) for one in ours)
    return {name: others - {name, ""} for name, others in found.items() if name}


def test_modules_never_import_each_other_in_a_circle() -> None:
    TopologicalSorter(arrows(lambda name: name)).prepare()


def test_folders_of_the_service_never_import_each_other_in_a_circle() -> None:
    folders = {"service." + path.name for path in (ROOT / "service").iterdir() if path.is_dir()}
    TopologicalSorter(arrows(lambda name: next((one for one in folders if within(name, one)), ""))).prepare()


@pytest.mark.parametrize("name", [name for name in modules() if within(name, "api")])
def test_the_client_library_needs_httpx_and_msgpack_and_nothing_else(name: str) -> None:
    outside = {found.split(".")[0] for found in imports(modules()[name])} - set(sys.stdlib_module_names)
    assert outside <= {"certifi", "httpx", "msgpack", "svcctl"}


def test_commands_never_import_each_other_but_within_a_noun() -> None:
    across = {
        (name, found)
        for name in modules()
        if within(name, "commands")
        for found in imports(modules()[name])
        if found.startswith("svcctl.commands.") and name.split(".")[:2] != found.split(".")[1:3]
    }
    assert across == set()


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--version"], {"httpx", "rich", "yaml", "duckdb", "pyarrow", "sqlalchemy", "sqlglot", "msgpack"}),
        (["--help"], {"httpx", "rich", "yaml", "duckdb", "pyarrow", "sqlalchemy", "sqlglot", "msgpack"}),
        (["range", "--from", "2h"], {"httpx", "rich", "duckdb", "pyarrow", "sqlalchemy", "sqlglot"}),
        (["export", "--help"], {"httpx", "rich", "yaml", "duckdb", "pyarrow", "sqlglot", "platformdirs", "zstandard"}),
        (["help", "dates"], {"httpx", "rich", "yaml", "duckdb", "pyarrow", "sqlalchemy", "sqlglot"}),
        (["service", "accounts", "list", "keys"], {"httpx", "rich", "alembic", "duckdb", "pyarrow", "sqlglot", "lark"}),
        (["service", "queries", "list"], {"httpx", "rich", "alembic", "duckdb", "pyarrow", "sqlglot", "lark"}),
        (["help", "query-language"], {"httpx", "rich", "yaml", "duckdb", "pyarrow", "sqlalchemy", "sqlglot", "lark"}),
    ],
)
def test_a_command_loads_only_what_it_needs(arguments: list[str], absent: set[str], tmp_path: Path) -> None:
    assert loaded_by(arguments, {"HOME": str(tmp_path), "PATH": ""}) & absent == set()


def loaded_by(arguments: list[str], environment: dict[str, str]) -> set[str]:
    """The packages that are loaded after a command has succeeded in a fresh process."""
    script = (
        "import sys; from svcctl.cli import run\n"
        f"code = run({arguments!r})\n"
        "print(code, *sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    code, *loaded = done.stderr.split()
    assert code == "0"
    return set(loaded)


FOREIGN = {
    *("httpx", "httpcore", "h11", "anyio", "certifi", "ssl", "http", "email", "asyncio", "logging", "idna"),
    *("rich", "pygments", "click", "yaml", "msgpack", "xml", "duckdb", "pyarrow", "platformdirs", "tempfile"),
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
    environment = {
        "HOME": str(tmp_path),
        "PATH": "",
        "SVCCTL_CONFIG": str(tmp_path / "none.yaml"),
        "SVCCTL_DATA": str(tmp_path / "data"),
        "SVCCTL_BASE_URL": serve(answer).url,
        "SVCCTL_API_KEY": "k",
        "SVCCTL_API_SECRET": "s",
    }
    assert loaded_by(arguments.split(), environment) & FOREIGN == set()


@pytest.mark.parametrize("arguments", [["--version"], ["help", "dates"]])
def test_what_is_known_without_a_command_line_loads_none(arguments: list[str], tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        f"sys.argv[1:] = {arguments!r}\n"
        "from svcctl.__main__ import main\n"
        "os._exit = lambda code: print(code, *sys.modules, file=sys.stderr)\n"
        "sys.modules['svcctl.cli'] = None  # loading it would fail\n"
        "try:\n    main()\nexcept ImportError:\n    pass"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    code, *loaded = done.stderr.split()
    assert code == "0"
    assert set(loaded) & {"typer", "svcctl.context", "subprocess", "json"} == set()
