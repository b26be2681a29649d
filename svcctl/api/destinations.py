"""The destination types, their parameter keys as seen in the field, and which of those are secret.

The interface leaves the keys of `destination.params` open, so an unknown key is passed on; this table says what is
known, suggests a known key for a near miss, and names what must never be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from svcctl.api.suggest import nearest

REDACTED = "***"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A key of `destination.params`; `required` and `secret` are facts of the destination, not of this client."""

    key: str
    meaning: str
    required: bool = False
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a query's rows go: a type, of which the known ones are written in lower case, and its parameters."""

    type: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"type": self.type, "params": dict(self.params)}


_NAME = Parameter("friendlyName", "name of the job, shown in job lists")

TYPES: Mapping[str, tuple[Parameter, ...]] = {
    "kafka": (
        Parameter("topic", "topic that receives the rows", required=True),
        Parameter("bootstrap.servers", "brokers, as host:port, separated by commas", required=True),
        Parameter("mode", "how a row is written: json, or array for the values alone"),
        Parameter("maxBytesPerCommit", "bytes of a batch, 1 MB unless given, at most 10 MB"),
        Parameter("maxTimeWithoutCommit", "milliseconds between batches, 10000 unless given, at least 1000"),
        Parameter("security.protocol", "how to talk to the brokers: plaintext, ssl, sasl_plaintext or sasl_ssl"),
        Parameter("sasl.mechanism", "how to log in, SCRAM-SHA-512 for example"),
        Parameter("sasl.username", "who logs in"),
        Parameter("sasl.password", "with which password", secret=True),
        Parameter("ssl.ca.pem", "certificate to trust, as PEM text"),
        Parameter("compression.type", "none, gzip, snappy, lz4 or zstd"),
        Parameter("api.version.request", "false for brokers before 0.10"),
        Parameter("broker.version.fallback", "version of such a broker"),
        _NAME,
    ),
    "s3": (
        Parameter("aws.bucket", "bucket that receives the files", required=True),
        Parameter("aws.region", "region of the bucket"),
        Parameter("aws.endpoint", "URL of another service that speaks S3"),
        Parameter("aws.accesskey", "access key"),
        Parameter("aws.secretkey", "secret key", secret=True),
        Parameter("format", "zip, gzip or plain; the rows inside are csv"),
        Parameter("file.password", "password of the zip file", secret=True),
        Parameter("s3.fileName", "name of the file"),
        Parameter("multiplefile", "true to write several files"),
        Parameter("retention.size", "MB a file, 50 to 500"),
        Parameter("retention.time", "seconds a file, 300 to 86400"),
        _NAME,
    ),
    "hdfs": (
        Parameter("fs.defaultFS", "file system, as hdfs://host:port", required=True),
        Parameter("file", "path of the file", required=True),
        Parameter("dfs.replication", "copies of each block"),
        Parameter("retention.size", "MB a file, 1 to 10000"),
        Parameter("retention.time", "seconds a file, 1 to 86400"),
        _NAME,
    ),
    "donothing": (_NAME,),
}

_SECRET_KEYS = frozenset(parameter.key.lower() for keys in TYPES.values() for parameter in keys if parameter.secret)
# Keys outside the table are passed on, so a secret among them is recognised by how secrets are commonly named.
_SECRET_WORDS = ("secret", "password", "passwd", "token", "sasl.jaas")


def is_secret(key: str) -> bool:
    """Whether a parameter's value must not be shown."""
    lowered = key.lower()
    return lowered in _SECRET_KEYS or any(word in lowered for word in _SECRET_WORDS)


def canonical_type(name: str) -> str:
    """`Kafka`, `KAFKA` and `kafka` are one type; a name that is not known stays as written."""
    return name.lower() if name.lower() in TYPES else name


def suggest_type(name: str) -> str | None:
    """The known destination type for a near miss."""
    return nearest(canonical_type(name), tuple(TYPES))


def suggest_key(destination_type: str, key: str) -> str | None:
    """The known parameter key of a type for a near miss."""
    return nearest(key, known_keys(destination_type))


def known_keys(destination_type: str) -> tuple[str, ...]:
    """The keys of a type, none for a type that is not known."""
    return tuple(parameter.key for parameter in TYPES.get(canonical_type(destination_type), ()))


def unknown_keys(destination: Destination) -> tuple[str, ...]:
    """The given keys that a known type is not known to take; they are passed on all the same."""
    if canonical_type(destination.type) not in TYPES:
        return ()
    return tuple(key for key in destination.params if key not in known_keys(destination.type))
