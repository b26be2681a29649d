"""The settings of the local service: what its process reads from the environment when it starts.

This module imports nothing that only the service needs and not everybody has installed: help lists the settings, and
`process` starts the service.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from svcctl.dates.lengths import UNITS, length_text, parse_length
from svcctl.errors import UsageError
from svcctl.io import home


@dataclass(frozen=True, slots=True)
class Number:
    """A setting that is a finite number, above 0 unless it `may_be_zero`."""

    environment: str
    default: float
    meaning: str
    may_be_zero: bool = False
    whole: bool = False

    @property
    def explanation(self) -> str:
        return f"{self.meaning} (default {self.default:g})"

    def read(self, environment: Mapping[str, str]) -> float:
        """The variable's number, or the default when it is unset or empty. UsageError for any other text."""
        text = environment.get(self.environment) or str(self.default)
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        bad = not 0 <= number < math.inf or not (number or self.may_be_zero) or (self.whole and number % 1)
        if bad:
            kind = "a whole number" if self.whole else "a number"
            wanted = f"{kind} from 0 on" if self.may_be_zero else f"{kind} above 0"
            raise UsageError(f"{self.environment} is '{text}', which is not {wanted}")
        return number


@dataclass(frozen=True, slots=True)
class Length:
    """A setting that is a length of time, in seconds: above 0 unless it `may_be_zero`."""

    environment: str
    default: float
    meaning: str
    may_be_zero: bool = False

    @property
    def explanation(self) -> str:
        return f"{self.meaning} (default {length_text(self.default)})"

    def read(self, environment: Mapping[str, str]) -> float:
        """The variable's seconds, or the default when it is unset or empty. UsageError for any other text."""
        text = environment.get(self.environment) or str(self.default)
        try:
            return parse_length(text, least=0 if self.may_be_zero else 0.001)
        except ValueError as error:
            raise UsageError(f"{self.environment} '{text}' cannot be used: {error}") from None


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting that is one of a few words, in any letter case; the first word is the default."""

    environment: str
    words: tuple[str, ...]
    meaning: str

    @property
    def default(self) -> str:
        return self.words[0]

    @property
    def explanation(self) -> str:
        return f"{self.meaning}: {' or '.join(self.words)} (default {self.default})"

    def read(self, environment: Mapping[str, str]) -> str:
        """The variable's word, or the default when it is unset or empty. UsageError for any other word."""
        text = environment.get(self.environment) or self.default
        if text.lower() not in self.words:
            raise UsageError(f"{self.environment} is '{text}', which is not {' or '.join(self.words)}")
        return text.lower()


@dataclass(frozen=True, slots=True)
class Text:
    """A setting that is any text, without a default."""

    environment: str
    meaning: str

    @property
    def explanation(self) -> str:
        return self.meaning

    def read(self, environment: Mapping[str, str]) -> str | None:
        """The variable's text, or None when it is unset or empty."""
        return environment.get(self.environment) or None


@dataclass(frozen=True, slots=True)
class Location(Text):
    """A setting that is a path or a URL, without a default. A relative path begins in the current directory."""

    def read(self, environment: Mapping[str, str]) -> str | None:
        """A URL unchanged, a path made absolute, or None when the variable is unset or empty."""
        text = environment.get(self.environment)
        return absolute(text) if text else None


def absolute(location: str) -> str:
    """Make a path absolute; a URL stays unchanged. UsageError when the home directory in a path is unknown."""
    return location if "://" in location else str(home.expanded(location).absolute())


_ORIGIN = re.compile(r"https?://[^\s/?#@*]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Origins:
    """A setting that lists origins of web pages, separated by commas or blanks; empty by default."""

    environment: str
    meaning: str
    default: tuple[str, ...] = ()

    @property
    def explanation(self) -> str:
        return f"{self.meaning} (default none)"

    def read(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """The origins in lower case, as browsers send them. UsageError for a text that is not an origin."""
        origins = re.split(r"[\s,]+", environment.get(self.environment, "").strip(" ,\t\n"))
        for origin in filter(None, origins):
            if not _ORIGIN.fullmatch(origin):
                raise UsageError(
                    f"{self.environment} names '{origin}', which is not an origin",
                    hint="an origin is a scheme and a host, with the port if it has one: https://app.example:8443",
                )
        return tuple(origin.lower() for origin in origins if origin)


DEMO = Length("SVCCTL_DEMO", 30 * UNITS["d"], "how far back demo events are created; 0 for none", may_be_zero=True)
QUERY_TIME = Length("SVCCTL_QUERY_TIME", 600, "how long the local service may work on a query")
PADDING_TIME = Length("SVCCTL_PADDING_TIME", 5, "silence before a waiting client gets padding")
LAG = Length("SVCCTL_LAG", 10, "how long a continuous query waits for late events of a period", may_be_zero=True)
CONNECTIONS = Number("SVCCTL_CONNECTIONS", 500, "connections that the local service keeps open at once")
ACCESS_EVENTS = Number("SVCCTL_ACCESS_EVENTS", 100_000, "requests that the table service.access keeps")
ACCESS_TIME = Length("SVCCTL_ACCESS_TIME", 30 * UNITS["d"], "how long the table service.access keeps a request")
QUERY_PLACES = Number("SVCCTL_QUERY_PLACES", 8, "queries that the local service works on at once", whole=True)
OPEN_QUERIES = Number("SVCCTL_OPEN_QUERIES", 64, "open queries of one domain; one more is refused with 429", whole=True)
RUNNING_JOBS = Number("SVCCTL_RUNNING_JOBS", 16, "running jobs of one domain", whole=True)
TOTAL_JOBS = Number("SVCCTL_TOTAL_JOBS", 64, "running jobs of all domains", whole=True)
LINE_END = Choice("SVCCTL_LINE_END", ("lf", "crlf"), "end of the lines that the local service sends")
CORS_ORIGINS = Origins("SVCCTL_CORS_ORIGINS", "origins of web pages that may use the local service (CORS)")
STATE = Text("SVCCTL_SERVICE_STATE", "URL of a PostgreSQL database that holds the state of several service processes")
STATE_PASSWORD_FILE = Location("SVCCTL_SERVICE_STATE_PASSWORD_FILE", "file with the password of that database")
TABLES = Location("SVCCTL_TABLES", "shared folder of the tables: a path, hdfs://host:port/path or s3://bucket/path")
TABLES_LOCK = Location("SVCCTL_TABLES_LOCK", "file that its writers lock, for stores without conditional puts")
ENGINE = Text("SVCCTL_ENGINE", "what queries on that folder run on: duckdb (default) or Spark, as sc://host:port")
SPARK_TOKEN = Text("SVCCTL_SPARK_TOKEN", "token for Spark; the connection is then encrypted, unless within a machine")
SPARK_CA_BUNDLE = Location("SVCCTL_SPARK_CA_BUNDLE", "file of certificates to trust for Spark; it makes TLS required")

NUMBERS = (
    *(DEMO, QUERY_TIME, PADDING_TIME, LAG),
    *(CONNECTIONS, ACCESS_EVENTS, ACCESS_TIME),
    *(QUERY_PLACES, OPEN_QUERIES, RUNNING_JOBS, TOTAL_JOBS),
)
SPARK_SETTINGS = (ENGINE, SPARK_TOKEN, SPARK_CA_BUNDLE)
SERVICE_SETTINGS = (*NUMBERS, LINE_END, CORS_ORIGINS, STATE, STATE_PASSWORD_FILE, TABLES, TABLES_LOCK, *SPARK_SETTINGS)
LOCATIONS = (STATE_PASSWORD_FILE, TABLES, TABLES_LOCK, SPARK_CA_BUNDLE)

EMBEDDED = "duckdb"
"""The value of the engine setting that means the embedded engine."""
PLACES = {"folder": TABLES, "state": STATE, "engine": ENGINE}
"""The settings that say what a service uses outside its own directory."""


def located(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that hold locations, made absolute for a process with another working directory."""
    return {setting.environment: found for setting in LOCATIONS if (found := setting.read(environment))}


def places(environment: Mapping[str, str], **given: str | None) -> dict[str, str]:
    """What a service uses outside its own directory, `given` on the command line or set; without secrets."""
    named = {name: given.get(name) or setting.read(environment) for name, setting in PLACES.items()}
    return {name: _shown(text) for name, text in named.items() if text and text != EMBEDDED}


def _shown(text: str) -> str:
    """A URL without its user and parameters, which may hold passwords and tokens; a path made absolute."""
    return re.sub("//[^/]*@", "//", re.split("[;?]", text)[0]) if "://" in text else absolute(text)
