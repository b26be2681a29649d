"""The known destination types: their parameters, which of those are secret, and what the local service does with each.

The interface leaves the keys of `destination.params` open, so unknown types and keys are sent too. Help, completion,
suggestions for mistyped names and the masking of secrets all read this table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from svcctl.words import nearest

REDACTED = "***"
SHORTEST = 4
"""Characters from which on a secret is masked inside longer words too."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A key of `destination.params`."""

    key: str
    meaning: str
    example: str = ""
    """An example of a value; only required keys have one."""
    secret: bool = False

    @property
    def required(self) -> bool:
        return bool(self.example)


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

TYPES: Mapping[str, DestinationType] = {
    "kafka": DestinationType(
        "Kafka",
        (
            Parameter("topic", "topic that receives the rows", example="web"),
            Parameter("bootstrap.servers", "brokers as host:port, separated by commas", example="host:9092"),
            Parameter("mode", "json (default): an object per row; array: only the values"),
            Parameter("maxBytesPerCommit", "bytes per batch: 1 MB by default, at most 10 MB"),
            Parameter("maxTimeWithoutCommit", "milliseconds between batches: 10000 by default, at least 1000"),
            Parameter("security.protocol", "plaintext, ssl, sasl_plaintext or sasl_ssl"),
            Parameter("sasl.mechanism", "authentication mechanism, for example SCRAM-SHA-512"),
            Parameter("sasl.username", "user name"),
            Parameter("sasl.password", "password", secret=True),
            Parameter("ssl.ca.pem", "CA certificate to trust, as PEM text"),
            Parameter("compression.type", "none, gzip, snappy, lz4 or zstd"),
            Parameter("api.version.request", "false for brokers before 0.10"),
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
            Parameter("aws.endpoint", "URL of another service with an S3 interface"),
            Parameter("aws.accesskey", "access key"),
            Parameter("aws.secretkey", "secret key", secret=True),
            Parameter("format", "plain (default), gzip or zip; the rows inside are csv"),
            Parameter("file.password", "password of the zip file", secret=True),
            Parameter("s3.fileName", "name of the files: the job's ID by default"),
            Parameter("multiplefile", "true (default): several files; false: a single file"),
            Parameter("retention.size", "size of a file in MB, 50 to 500: 100 by default"),
            Parameter("retention.time", "age of a file in seconds, 300 to 86400: 300 by default"),
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
            Parameter("fs.defaultFS", "file system, as hdfs://host:port", example="hdfs://host:8020"),
            Parameter("file", "absolute path of the file", example="/logs/web.csv"),
            Parameter("dfs.replication", "copies of each block"),
            Parameter("retention.size", "size of a file in MB, 1 to 10000: 128 by default"),
            Parameter("retention.time", "age of a file in seconds, 1 to 86400: 300 by default"),
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
    """The parameters that a known type needs and that are not given."""
    row = TYPES.get(canonical_type(destination.type))
    given = {key.lower() for key in destination.params}
    return tuple(one for one in row.parameters if one.required and one.key.lower() not in given) if row else ()


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
