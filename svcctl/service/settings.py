"""The settings of the local service. The process of the service reads the settings from the environment when it starts.

Clients import this module too, because help lists the settings and `process` passes the settings to the service. So
this module must not import packages that only the service needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from svcctl.dates.lengths import parse_length
from svcctl.io import home
from svcctl.io.setting import Setting, parse_count, parse_size
from svcctl.service.hosts import allowed_hosts
from svcctl.words import mask_urls


def absolute(location: str) -> str:
    """Return a path as an absolute path, or a URL unchanged.

    Raises UsageError if the path has an unknown home directory.
    """
    return location if "://" in location else str(home.expanded_path(location).absolute())


_ORIGIN = r"(?i)https?://[^\s/?#@*]+"


def _origins(text: str) -> tuple[str, ...]:
    """Parse a list of origins. The origins are returned in lower case, because browsers send origins in lower case.

    Raises ValueError if an origin is invalid.
    """
    origins = re.split(r"[\s,]+", text.strip(" ,\t\n"))
    for origin in filter(None, origins):
        if not re.fullmatch(_ORIGIN, origin):
            raise ValueError(
                f"'{origin}' is not an origin: write a scheme and a host, such as https://app.example:8443"
            )
    return tuple(origin.lower() for origin in origins if origin)


def _setting(
    environment: str, meaning: str, parse: Callable[[str], Any] = str, default: str | None = None, *choices: str
) -> Setting:
    return Setting(environment, meaning, parse, environment, default, choices)


_time_or_zero, _count = partial(parse_length, least=0), partial(parse_count, least=1)

DEMO = _setting("SVCCTL_DEMO", "age of the oldest demo events; 0 for no demo events", _time_or_zero, "30d")
QUERY_TIME = _setting("SVCCTL_QUERY_TIME", "time limit of a query at the local service", parse_length, "10m")
PADDING_TIME = _setting(
    "SVCCTL_PADDING_TIME",
    "after this time without rows, the service sends blanks or lines to keep the connection open",
    parse_length,
    "5s",
)
LAG_TIME = _setting(
    "SVCCTL_LAG",
    "how long the service waits for late events before it sends the groups of a period",
    _time_or_zero,
    "10s",
)
CONNECTIONS = _setting("SVCCTL_CONNECTIONS", "maximum number of open connections of the local service", _count, "500")
ACCESS_EVENTS = _setting(
    "SVCCTL_ACCESS_EVENTS", "maximum number of requests in the table service.access", _count, "100000"
)
ACCESS_TIME = _setting("SVCCTL_ACCESS_TIME", "how long the table service.access keeps a request", parse_length, "30d")
QUERY_PLACES = _setting("SVCCTL_QUERY_PLACES", "number of queries that the local service computes at once", _count, "8")
OPEN_QUERIES = _setting("SVCCTL_OPEN_QUERIES", "maximum number of open queries of one domain", _count, "64")
RUNNING_JOBS = _setting("SVCCTL_RUNNING_JOBS", "maximum number of running jobs of one domain", _count, "64")
TOTAL_JOBS = _setting("SVCCTL_TOTAL_JOBS", "maximum number of running jobs of all domains", _count, "256")
LOAD_TIME = _setting("SVCCTL_LOAD_TIME", "time limit for loading files", parse_length, "2h")
LOAD_BYTES = _setting(
    "SVCCTL_LOAD_BYTES", "maximum unpacked size of all files that are loaded together", parse_size, "100GB"
)
LOAD_RATIO = _setting(
    "SVCCTL_LOAD_RATIO", "maximum ratio of the unpacked size of a large file to its packed size", _count, "5000"
)
LOAD_MEMORY = _setting(
    "SVCCTL_LOAD_MEMORY", "memory for reading the files that are loaded together", parse_size, "500MB"
)
LOAD_DEPTH = _setting(
    "SVCCTL_LOAD_DEPTH", "how many levels of nested JSON become columns; with 1, all objects become text", _count, "5"
)
LOAD_NESTED_COLUMNS = _setting(
    "SVCCTL_LOAD_NESTED_COLUMNS", "maximum number of columns that are made from nested JSON in a file", _count, "200"
)
LOAD_COLUMNS = _setting(
    "SVCCTL_LOAD_COLUMNS", "maximum number of columns that all loaded files add to a table", parse_count, "200"
)
LINE_END = _setting("SVCCTL_LINE_END", "line end in answers of the local service", str, "lf", "lf", "crlf")
CORS_ORIGINS = _setting("SVCCTL_CORS_ORIGINS", "origins of web pages that may use the local service (CORS)", _origins)
DESTINATIONS_ALLOWED = _setting(allowed_hosts.VARIABLE, "hosts that jobs may deliver to", allowed_hosts.parse)
STATE = _setting("SVCCTL_SERVICE_STATE", "URL of a PostgreSQL database that several service processes can share")
STATE_PASSWORD_FILE = _setting(
    "SVCCTL_SERVICE_STATE_PASSWORD_FILE", "file with the password of this database", absolute
)
TABLES = _setting(
    "SVCCTL_TABLES",
    "folder of tables that several service processes can share: a path, hdfs://host:port/path or s3://bucket/path",
    absolute,
)
TABLES_LOCK = _setting(
    "SVCCTL_TABLES_LOCK",
    "lock file that all writers to this folder use; only needed if the storage has no conditional puts",
    absolute,
)
ENGINE = _setting(
    "SVCCTL_ENGINE", "program that runs queries on this folder: duckdb (default), or Spark as sc://host:port"
)
SPARK_TOKEN = _setting("SVCCTL_SPARK_TOKEN", "token for Spark; requires TLS, except for Spark on the same machine")
SPARK_CA_BUNDLE = _setting(
    "SVCCTL_SPARK_CA_BUNDLE", "file of certificates to trust for Spark; only for Spark with TLS", absolute
)

SERVICE_SETTINGS = (
    *(DEMO, QUERY_TIME, PADDING_TIME, LAG_TIME, CONNECTIONS, ACCESS_EVENTS, ACCESS_TIME),
    *(QUERY_PLACES, OPEN_QUERIES, RUNNING_JOBS, TOTAL_JOBS, LOAD_TIME, LOAD_BYTES, LOAD_RATIO, LOAD_MEMORY),
    *(LOAD_DEPTH, LOAD_NESTED_COLUMNS, LOAD_COLUMNS),
    *(LINE_END, CORS_ORIGINS, DESTINATIONS_ALLOWED),
    *(STATE, STATE_PASSWORD_FILE, TABLES, TABLES_LOCK, ENGINE, SPARK_TOKEN, SPARK_CA_BUNDLE),
)

EMBEDDED = "duckdb"
"""The value of ENGINE that selects the embedded engine DuckDB."""
PLACES = {"folder": TABLES, "state": STATE, "engine": ENGINE}
"""The settings for the locations outside the service's own directory: its shared folder, its state and its engine."""


def absolute_locations(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of the service that contain paths or URLs, with their values.

    Each path is made absolute, so that a process with another working directory can use the path.
    """
    locations = [setting for setting in SERVICE_SETTINGS if setting.parse is absolute]
    return {setting.name: location for setting in locations if (location := setting.read(environment))}


def places(environment: Mapping[str, str], **options: str | None) -> dict[str, str]:
    """Return the shared folder, the state and the engine that a service uses outside its own directory.

    Secrets are removed. `options` come from the command line, and take precedence over the environment.
    """
    named = {name: options.get(name) or setting.read(environment) for name, setting in PLACES.items()}
    return {name: _public_location(text) for name, text in named.items() if text and text != EMBEDDED}


def _public_location(text: str) -> str:
    """Return a location for use in messages.

    A path is made absolute. A URL loses its parameters, user and password.
    """
    return re.split("[;?]", mask_urls(text))[0] if "://" in text else absolute(text)
