"""The known destination types: their parameters with the values that these may have, and what the local service does.

The interface leaves the keys of `destination.params` open, so unknown types and keys are sent too. Help, completion,
suggestions for mistyped names, the masking of secrets, and the checks of client and service all read this table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from svcctl.io.urls import names_host
from svcctl.words import nearest

REDACTED = "***"
SHORTEST = 4
"""Characters from which on a secret is masked inside longer words too."""


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number from `low` to `high`."""

    low: int
    high: int
    default: int | None = None

    def allows(self, text: str) -> bool:
        return text.isascii() and text.isdigit() and len(text) < 20 and self.low <= int(text) <= self.high

    @property
    def wanted(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    @property
    def values(self) -> str:
        return f"{self.low} to {self.high}" + ("" if self.default is None else f", {self.default} by default")


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these words, in any letter case; the first by default."""

    words: tuple[str, ...]

    def allows(self, text: str) -> bool:
        return text.lower() in self.words

    @property
    def wanted(self) -> str:
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"

    @property
    def values(self) -> str:
        return self.wanted.replace(self.words[0], f"{self.words[0]} (default)", 1)


@dataclass(frozen=True, slots=True)
class Form:
    """A text that a function `allows`; `wanted` says which texts these are."""

    wanted: str
    allows: Callable[[str], bool]
    values: str = ""


FLAG = Choice(("true", "false"))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A key of `destination.params`, and what its value may be: any text, unless `kind` says more."""

    key: str
    meaning: str
    example: str = ""
    """An example of a value; only required keys have one."""
    secret: bool = False
    kind: Number | Choice | Form | None = None
    needs: tuple[str, str] | None = None
    """Another key that must be given if this one is, and its value, or nothing for any."""

    @property
    def required(self) -> bool:
        return bool(self.example)

    @property
    def default(self) -> str:
        """The value that it has if none is given."""
        match self.kind:
            case Choice(words):
                return words[0]
            case Number(default=int(number)):
                return str(number)
            case _:
                return ""

    @property
    def about(self) -> str:
        """The meaning, with the values that there are."""
        return f"{self.meaning}: {self.kind.values}" if self.kind and self.kind.values else self.meaning


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a query's rows go: a type and its parameters, both sent as they are."""

    type: str
    params: Mapping[str, Any] = field(default_factory=dict)
    parts: Sequence[Mapping[str, Any]] = ()
    """The objects that `params` is made of, if it is sent as a list."""

    def to_json(self) -> dict[str, Any]:
        return {"type": self.type, "params": [dict(part) for part in self.parts] or dict(self.params)}

    def with_params(self, given: Mapping[str, Any]) -> Destination:
        """The same destination with more parameters, which replace those of the same name, whatever its case."""
        names = {key.lower() for key in given}

        def kept(params: Mapping[str, Any]) -> dict[str, Any]:
            return {key: value for key, value in params.items() if key.lower() not in names}

        parts = tuple(kept(part) for part in self.parts)
        more = (given,) if parts and given else ()
        return Destination(self.type, {**kept(self.params), **given}, parts + more)


@dataclass(frozen=True, slots=True)
class DestinationType:
    """A known type: how the interface spells it, its parameters, and what the local service does with the rows."""

    name: str
    parameters: tuple[Parameter, ...]
    local: str


_NAME = Parameter("friendlyName", "name of the job, shown in job lists")
_SEVERAL = "multiplefile"
_WEB = Form("an http or https URL", lambda text: names_host(text, "http", "https"))
_HDFS = Form("of the form hdfs://host:port", lambda text: names_host(text, "hdfs"))
_PATH = Form("the absolute path of a file", lambda text: text.startswith("/") and not text.endswith("/"))

TYPES: Mapping[str, DestinationType] = {
    "kafka": DestinationType(
        "Kafka",
        (
            Parameter("topic", "topic that receives the rows", example="web"),
            Parameter("bootstrap.servers", "brokers as host:port, separated by commas", example="host:9092"),
            Parameter("mode", "each row as an object, or as an array of its values", kind=Choice(("json", "array"))),
            Parameter("maxBytesPerCommit", "bytes per batch", kind=Number(1, 10_000_000, 1_000_000)),
            Parameter("maxTimeWithoutCommit", "milliseconds between batches", kind=Number(1000, 3_600_000, 10_000)),
            Parameter(
                "security.protocol",
                "encryption and authentication",
                kind=Choice(("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")),
            ),
            Parameter("sasl.mechanism", "authentication mechanism, for example SCRAM-SHA-512"),
            Parameter("sasl.username", "user name"),
            Parameter("sasl.password", "password", secret=True),
            Parameter("ssl.ca.pem", "CA certificate to trust, as PEM text"),
            Parameter(
                "compression.type", "compression of messages", kind=Choice(("none", "gzip", "snappy", "lz4", "zstd"))
            ),
            Parameter("api.version.request", "ask brokers for their version, unless it is before 0.10", kind=FLAG),
            Parameter("broker.version.fallback", "version of a broker before 0.10"),
            _NAME,
        ),
        local="Each row is a message with the key <job>/<row>, and each batch a transaction. A job writes to one "
        "partition in the query's order. Consumers with isolation level read_committed read every row once. After a "
        "failure the end of the partition is read back, so this also holds on brokers that show consumers the messages "
        "of aborted transactions. Jobs may share a topic, except on brokers that complete a transaction only together "
        "with those that overlap it (Tansu 0.6 does this): if several jobs write to one partition there, committed "
        "rows can stay hidden from these consumers, so use a topic per job. Brokers before 0.11 have no transactions: "
        "a row may then arrive twice, with the same key, if the broker still carries out a request after the service "
        "that sent it was killed and started again.",
    ),
    "s3": DestinationType(
        "S3",
        (
            Parameter("aws.bucket", "bucket that receives the files", example="my-bucket"),
            Parameter("aws.region", "region of the bucket"),
            Parameter("aws.endpoint", "URL of another service with an S3 interface", kind=_WEB),
            Parameter("aws.accesskey", "access key", needs=("aws.secretkey", "")),
            Parameter("aws.secretkey", "secret key", secret=True),
            Parameter("format", "packing of the rows, which are csv", kind=Choice(("plain", "gzip", "zip"))),
            Parameter("file.password", "password of the zip file", secret=True, needs=("format", "zip")),
            Parameter("s3.fileName", "name of the files: the job's ID by default"),
            Parameter(_SEVERAL, "several files, or a single one if the query has an end", kind=FLAG),
            Parameter("retention.size", "size of a file in MB", kind=Number(50, 500, 100)),
            Parameter("retention.time", "age of a file in seconds", kind=Number(300, 86_400, 300)),
            _NAME,
        ),
        local="Writes objects <name>_000.csv, <name>_001.csv … (.gz, .zip); <name> is s3.fileName or the job's ID. "
        "Numbers continue after the highest one that is there, and no object is replaced, also when several jobs have "
        "one name: the keys must be allowed to list, read, write and delete objects. An object appears when it is "
        "complete: when it reaches its size or age, or when the job is stopped or completed. A zip file with a "
        "password is encrypted with AES.",
    ),
    "hdfs": DestinationType(
        "HDFS",
        (
            Parameter("fs.defaultFS", "file system, as hdfs://host:port", example="hdfs://host:8020", kind=_HDFS),
            Parameter("file", "absolute path of the file", example="/logs/web.csv", kind=_PATH),
            Parameter("dfs.replication", "copies of each block", kind=Number(1, 512)),
            Parameter("retention.size", "size of a file in MB", kind=Number(1, 10_000, 128)),
            Parameter("retention.time", "age of a file in seconds", kind=Number(1, 86_400, 300)),
            _NAME,
        ),
        local="Writes several files: /logs/web.csv becomes /logs/web_000.csv, /logs/web_001.csv …. Numbers continue "
        "after the highest one that is there, and no file is replaced. A file is hidden until it is complete: when it "
        "reaches its size or age, or when the job is stopped or completed.",
    ),
    "donothing": DestinationType("donothing", (_NAME,), local="Counts the rows and discards them."),
}

NAMES = tuple(row.name for row in TYPES.values())
"""The types as the interface spells them. Case does not count; services report them in lower case."""

_SECRET_KEYS = frozenset(
    parameter.key.lower() for row in TYPES.values() for parameter in row.parameters if parameter.secret
)
# Unknown keys are sent too; a secret among them is recognised by how secrets are commonly named.
_SECRET_WORDS = ("secret", "password", "passwd", "token", "sasl.jaas")


def is_secret(key: str) -> bool:
    """Whether a parameter's value must not be shown."""
    lowered = key.lower()
    return lowered in _SECRET_KEYS or any(word in lowered for word in _SECRET_WORDS)


def without_secret(text: str, secret: str) -> str:
    """The text with a secret masked; a very short secret only where it is a whole word, since many words contain it."""
    if len(secret) >= SHORTEST:
        return text.replace(secret, REDACTED)
    return re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", REDACTED, text) if secret else text


def canonical_type(name: str) -> str:
    """The known type that a name in any case means (`Kafka`, `KAFKA`); an unknown name stays as written."""
    return name.lower() if name.lower() in TYPES else name


def suggest_type(name: str) -> str | None:
    """The known type that a mistyped one was probably meant to be."""
    return None if canonical_type(name) in TYPES else nearest(name, NAMES)


def missing(destination: Destination) -> tuple[Parameter, ...]:
    """The parameters that a known type needs and that have no value."""
    row = TYPES.get(canonical_type(destination.type))
    given = {key.lower() for key, value in destination.params.items() if value not in (None, "")}
    return tuple(one for one in row.parameters if one.required and one.key.lower() not in given) if row else ()


def mistakes(destination: Destination, *, endless: bool) -> Iterator[tuple[str, str]]:
    """The parameters of a known type whose values it does not take, each with what is wrong: `must be true or false`.

    The value is not in it, since it may be a secret. A command line has only text, so a value may be of any JSON type.
    """
    row = TYPES.get(canonical_type(destination.type))
    given = {key.lower(): value for key, value in destination.params.items() if value not in (None, "")}
    for one in row.parameters if row else ():
        if (value := given.get(one.key.lower())) is None:
            continue
        text = str(value)
        if isinstance(value, dict | list):
            yield one.key, "must be text"
        elif one.kind and not one.kind.allows(text):
            yield one.key, f"must be {one.kind.wanted}"
        elif one.key == _SEVERAL and endless and text.lower() == "false":
            yield one.key, "must be true for a query without an end"
        elif one.needs:
            key, wanted = one.needs
            other = str(given.get(key.lower(), ""))
            if not other or wanted not in ("", other.lower()):
                yield one.key, f"needs {key} {wanted}".rstrip()


def suggest_key(destination_type: str, key: str) -> str | None:
    """The known key of a type that a mistyped one was probably meant to be."""
    return nearest(key, known_keys(destination_type))


def known_keys(destination_type: str) -> tuple[str, ...]:
    """The keys of a type; none for an unknown type."""
    row = TYPES.get(canonical_type(destination_type))
    return tuple(parameter.key for parameter in row.parameters) if row else ()


def known_key(destination_type: str, key: str) -> str:
    """The known key of a type that a key in any case means (`Topic`); an unknown key stays as written."""
    return next((known for known in known_keys(destination_type) if known.lower() == key.lower()), key)


def unknown_keys(destination: Destination) -> tuple[str, ...]:
    """The given keys that a known type does not have, whatever their case; they are sent all the same."""
    known = known_keys(destination.type)
    return tuple(key for key in destination.params if known and known_key(destination.type, key) not in known)
