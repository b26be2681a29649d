"""The known destination types: their parameters, the allowed values, and how the local service delivers rows.

The HTTP interface allows any keys in `destination.params`, so svcctl also sends unknown types and unknown keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from svcctl.errors import UsageError
from svcctl.io.urls import names_host
from svcctl.io.yaml_text import boolean, integer, json_value
from svcctl.words import DESTINATION_TYPES, is_secret, json_text, mask, mask_urls, nearest

MIN_MASKED_CHARS = 4
"""The minimum length of a secret that is masked even inside longer words."""


class Form(NamedTuple):
    """The rule for the value of a parameter.

    `allows` checks whether a text is allowed, and `wanted` describes all allowed texts.
    """

    wanted: str
    allows: Callable[[str], bool]
    any_case: bool = False
    """Whether the case of the value is ignored."""
    read: Callable[[str], Any] = str
    """A function that converts an unquoted text in a YAML file to a JSON value, such as a number.

    Returns None if the text cannot be converted.
    """


_TEXT = Form("text", lambda text: True)
_ANY_VALUE = Form("any value", lambda text: True, read=json_value)


def _number(low: int, high: int) -> Form:
    def allows(text: str) -> bool:
        return text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high

    return Form(f"a whole number from {low} to {high}", allows, read=integer)


def _word(*words: str) -> Form:
    return Form(f"{', '.join(words[:-1])} or {words[-1]}", lambda text: text.lower() in words, any_case=True)


class Parameter(NamedTuple):
    """A parameter of a destination type. `key` is its key in `destination.params`.

    If `form` is None, any text is allowed.
    """

    key: str
    meaning: str
    example: str = ""
    """An example of a value. Only required parameters have an example."""
    secret: bool = False
    form: Form | None = None
    default: str = ""
    needs: tuple[str, str] | None = None
    """The key of another parameter that must also be set if this parameter is set, and its required value.

    If the required value is empty, the other parameter may have any value.
    """
    place: bool = False
    """Whether the parameter is part of the place to which a job writes numbered files, such as a bucket or a path."""

    @property
    def required(self) -> bool:
        return bool(self.example)

    @property
    def about(self) -> str:
        """A text that describes the parameter: its meaning, its allowed values and its default."""
        details = [self.form.wanted] if self.form else []
        details += [f"default {self.default}"] if self.default else []
        return f"{self.meaning} ({'; '.join(details)})" if details else self.meaning


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination of a query's rows: a type and its parameters. Both are sent unchanged."""

    type: str
    params: Mapping[str, Any] = field(default_factory=dict)
    parts: Sequence[Mapping[str, Any]] = ()
    """The parameters as a list of objects; empty unless the user wrote a list."""

    def to_json(self) -> dict[str, Any]:
        return {"type": self.type, "params": [dict(part) for part in self.parts] or dict(self.params)}

    def with_params(self, additions: Mapping[str, Any]) -> Destination:
        """Return the destination with more parameters.

        An added parameter replaces a parameter with the same name. The case of the names is ignored.
        """
        names = {key.lower() for key in additions}

        def others(params: Mapping[str, Any]) -> dict[str, Any]:
            return {key: value for key, value in params.items() if key.lower() not in names}

        parts = tuple(others(part) for part in self.parts)
        more = (additions,) if parts and additions else ()
        return Destination(self.type, {**others(self.params), **additions}, parts + more)


class DestinationType(NamedTuple):
    """A known destination type: its name, its parameters, and a text about the delivery by the local service."""

    name: str
    parameters: tuple[Parameter, ...]
    local: str


_NAME = Parameter("friendlyName", "name of the job, shown in job lists")
_SEVERAL = "multiplefile"
_OBJECTS = "s3.fileName"
_FLAG = _word("true", "false")._replace(read=boolean)
_WEB = Form("an http or https URL", lambda text: names_host(text, "http", "https"))
_REGION = Form("letters, digits and hyphens", lambda text: re.fullmatch("[A-Za-z0-9._-]+", text) is not None)
_HDFS = Form("of the form hdfs://host:port", lambda text: names_host(text, "hdfs"))
_PATH = Form("an absolute path, without / at its end", lambda text: text.startswith("/") and not text.endswith("/"))

TYPES: Mapping[str, DestinationType] = {
    "kafka": DestinationType(
        "Kafka",
        (
            Parameter("topic", "topic that receives the rows", example="web"),
            Parameter("bootstrap.servers", "brokers as host:port, separated by commas", example="host:9092"),
            Parameter(
                "mode",
                "format of a row: a JSON object, or a JSON array of its values",
                form=_word("json", "array"),
                default="json",
            ),
            Parameter(
                "maxBytesPerCommit",
                "maximum bytes of rows per transaction",
                form=_number(1, 10_000_000),
                default="1000000",
            ),
            Parameter(
                "maxTimeWithoutCommit",
                "maximum milliseconds between transactions",
                form=_number(1000, 3_600_000),
                default="10000",
            ),
            Parameter(
                "security.protocol",
                "encryption and authentication",
                form=_word("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
                default="plaintext",
            ),
            Parameter("sasl.mechanism", "authentication mechanism, for example SCRAM-SHA-512"),
            Parameter("sasl.username", "user name"),
            Parameter("sasl.password", "password", secret=True),
            Parameter("ssl.ca.pem", "CA certificate to trust, as PEM text"),
            Parameter(
                "compression.type",
                "compression of messages",
                form=_word("none", "gzip", "snappy", "lz4", "zstd"),
                default="none",
            ),
            Parameter(
                "api.version.request",
                "whether to ask brokers for their version; set false for brokers before 0.10",
                form=_FLAG,
                default="true",
            ),
            Parameter("broker.version.fallback", "version of the brokers, if it is before 0.10"),
            _NAME,
        ),
        local="Each row is a message. All messages of a job are in one partition, in the order of the query. The job "
        "sends the messages in transactions. So consumers with isolation level read_committed read every row once. A "
        "row larger than maxBytesPerCommit has its own transaction. A row may have at most 10 MB, and the topic must "
        "accept rows of this size. Several jobs may write to the same topic. But with the broker Tansu 0.6, use one "
        "topic per job. Otherwise consumers may not get the last rows until the next transaction. Brokers before 0.11 "
        "have no transactions. With these brokers, a row can arrive twice if the service is killed. Both messages then "
        "have the same key.",
    ),
    "s3": DestinationType(
        "S3",
        (
            Parameter("aws.bucket", "bucket that receives the files", example="my-bucket", place=True),
            Parameter("aws.region", "region of the bucket", form=_REGION),
            Parameter("aws.endpoint", "another service with the S3 API, instead of AWS", form=_WEB, place=True),
            Parameter("aws.accesskey", "access key", needs=("aws.secretkey", "")),
            Parameter("aws.secretkey", "secret key", secret=True),
            Parameter("format", "compression of the csv files", form=_word("plain", "gzip", "zip"), default="plain"),
            Parameter("file.password", "password of the zip file", secret=True, needs=("format", "zip")),
            Parameter(
                _OBJECTS, "name of the files; a number and an ending are added (default: the job's ID)", place=True
            ),
            Parameter(
                _SEVERAL,
                "whether to write several files; false is possible only for a query with an end",
                form=_FLAG,
                default="true",
            ),
            Parameter("retention.size", "size in MB at which a file is complete", form=_number(50, 500), default="100"),
            Parameter(
                "retention.time", "age in seconds at which a file is complete", form=_number(300, 86_400), default="300"
            ),
            _NAME,
        ),
        local="The rows are in files with the names <name>_000.csv, <name>_001.csv and so on. Compressed files also "
        "end in .gz or .zip. <name> is s3.fileName, or else the job's ID. Numbers continue after the highest number of "
        "an existing file. No file is replaced, even if several jobs use the same name. A file appears when it is "
        "complete. It is complete when it has reached retention.size or retention.time, or when the job stops or "
        "completes. The access key needs permission to list, read, write and delete objects. A zip file with a "
        "password is encrypted with AES.",
    ),
    "hdfs": DestinationType(
        "HDFS",
        (
            Parameter("fs.defaultFS", "file system", example="hdfs://host:8020", form=_HDFS, place=True),
            Parameter(
                "file",
                "path of the files, such as /logs/web.csv; a number is added to each name",
                example="/logs/web.csv",
                form=_PATH,
                place=True,
            ),
            Parameter("dfs.replication", "copies of each block", form=_number(1, 512)),
            Parameter(
                "retention.size", "size in MB at which a file is complete", form=_number(1, 10_000), default="128"
            ),
            Parameter(
                "retention.time", "age in seconds at which a file is complete", form=_number(1, 86_400), default="300"
            ),
            _NAME,
        ),
        local="The rows are in several files. For /logs/web.csv, the names are /logs/web_000.csv, /logs/web_001.csv "
        "and so on. Numbers continue after the highest number of an existing file. No file is replaced. A file "
        "appears when it is complete. It is complete when it has reached retention.size or retention.time, or when "
        "the job stops or completes.",
    ),
    "donothing": DestinationType("donothing", (_NAME,), local="The rows are counted and discarded."),
}


def without_secret(text: str, secret: str) -> str:
    """Return the text with a secret masked.

    A very short secret is masked only as a whole word, because its characters may also occur in ordinary words.
    """
    if len(secret) >= MIN_MASKED_CHARS:
        return text.replace(secret, mask())
    return re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", mask(), text) if secret else text


def without_secrets(text: str, params: Mapping[str, Any]) -> str:
    """Return the text of a destination's error with secrets masked.

    The masked secrets are the secret values in `params`, and the secrets in URLs within the text.
    """
    for key, value in params.items():
        if is_secret(key) and value:
            text = without_secret(text, json_text(value))
    return mask_urls(text)


def canonical_type(name: str) -> str:
    """Return a destination type's key in the table TYPES.

    `name` is the type in any case, such as `Kafka` or `KAFKA`. An unknown name is returned unchanged.
    """
    return name.lower() if name.lower() in TYPES else name


def suggest_type(name: str) -> str | None:
    """Return the destination type that is most similar to a mistyped name.

    Returns None if the name is known, or if no type is similar.
    """
    return None if canonical_type(name) in TYPES else nearest(name, DESTINATION_TYPES)


def missing(destination: Destination) -> tuple[Parameter, ...]:
    """Return the required parameters that have no value. For an unknown destination type, the result is empty."""
    row = TYPES.get(canonical_type(destination.type))
    keys = {key.lower() for key, value in destination.params.items() if value not in (None, "")}
    parameters = row.parameters if row else ()
    return tuple(parameter for parameter in parameters if parameter.required and parameter.key.lower() not in keys)


def mistakes(destination: Destination, *, endless: bool) -> Iterator[tuple[str, str]]:
    """Yield the key of each parameter with an invalid value, and the problem, such as `must be true or false`.

    The problem does not quote the value, which may be a secret. A number may also be given as text, as on a command
    line. Parameters of unknown destination types are not checked. `endless` says that the query has no end. Some values
    are invalid for a query without an end.
    """
    row = TYPES.get(canonical_type(destination.type))
    values = {key.lower(): value for key, value in destination.params.items() if value not in (None, "")}
    for parameter in row.parameters if row else ():
        if (value := values.get(parameter.key.lower())) is None:
            continue
        text = json_text(value)
        if isinstance(value, dict | list):
            yield parameter.key, "must be text"
        elif parameter.form and not parameter.form.allows(text):
            yield parameter.key, f"must be {parameter.form.wanted}"
        elif parameter.key == _SEVERAL and endless and text.lower() == "false":
            yield parameter.key, "must be true for a query without an end"
        elif parameter.needs:
            key, needed = parameter.needs
            other = json_text(values.get(key.lower(), ""))
            if not other or needed not in ("", other.lower()):
                yield parameter.key, f"needs {key} {needed}".rstrip()


def unknown_type(kind: str) -> UsageError:
    """Return the error about an unknown destination type."""
    types = f"types are {', '.join(DESTINATION_TYPES)}"
    meant = suggest_type(kind)
    return UsageError(f"unknown destination type '{kind}'", hint=f"did you mean '{meant}'? {types}" if meant else types)


def check(destination: Destination, *, endless: bool) -> None:
    """Raise UsageError for an unknown destination type, a missing required parameter, or an invalid value."""
    kind = destination.type
    if canonical_type(kind) not in TYPES:
        raise unknown_type(kind)
    if needed := missing(destination):
        keys = [parameter.key for parameter in needed]
        unknown = {key: suggest_key(kind, key) for key in unknown_keys(destination)}
        slips = " and ".join(f"'{meant}' for '{key}'" for key, meant in unknown.items() if meant in keys)
        raise UsageError(
            f"{kind} needs {' and '.join(keys)}",
            hint=f"did you mean {slips}?" if slips else None,
            reason=None if slips else "parameters-missing",
            data={"type": kind, "parameters": {parameter.key: parameter.example for parameter in needed}},
        )
    for key, why in mistakes(destination, endless=endless):
        raise UsageError(f"{key} {why}")


def suggest_key(destination_type: str, key: str) -> str | None:
    """Return the parameter key that is most similar to a mistyped key; None if the type has no similar key."""
    return nearest(key, known_keys(destination_type))


def known_keys(destination_type: str) -> tuple[str, ...]:
    """Return the parameter keys of a destination type; empty for an unknown type."""
    row = TYPES.get(canonical_type(destination_type))
    return tuple(parameter.key for parameter in row.parameters) if row else ()


def known_key(destination_type: str, key: str) -> str:
    """Return a parameter's key in its usual spelling. `key` is in any case, such as `Topic`.

    An unknown key is returned unchanged.
    """
    return next((spelling for spelling in known_keys(destination_type) if spelling.lower() == key.lower()), key)


def text_of(destination: Destination, key: str, default: str = "") -> str:
    """Return the value of a known parameter as text.

    If the parameter has no value, the result is the default of the parameter. If the parameter has no default either,
    the result is `default`. For a parameter that ignores case, the text is in lower case.
    """
    row = next(row for row in TYPES[destination.type].parameters if row.key == key)
    value = destination.params.get(key)
    text = row.default or default if value in (None, "") else json_text(value)
    return text.lower() if row.form and row.form.any_case else text


def place_of_files(kind: str, params: Mapping[str, Any], job_id: str) -> Mapping[str, str]:
    """Return the parameters of the place to which a job writes numbered files, such as the bucket and the file name.

    Two jobs with equal places continue the same series of files. The result is empty for a destination type without
    numbered files. In S3, `job_id` is the default file name.
    """
    row = TYPES.get(kind)
    keys = [parameter.key for parameter in row.parameters if parameter.place] if row else []
    return {key: text_of(Destination(kind, params), key, job_id if key == _OBJECTS else "") for key in keys}


def form_of(destination_type: str, key: str) -> Form:
    """Return the rule for the value of a destination's parameter. An unknown parameter may have any JSON value."""
    row = TYPES.get(canonical_type(destination_type))
    parameter = next((candidate for candidate in row.parameters if candidate.key == key), None) if row else None
    return (parameter.form or _TEXT) if parameter else _ANY_VALUE


def unknown_keys(destination: Destination) -> tuple[str, ...]:
    """Return those keys of a destination's parameters that the destination type does not have. Case is ignored.

    These keys are still sent to the service. For an unknown type, the result is empty.
    """
    keys = known_keys(destination.type)
    return tuple(key for key in destination.params if keys and known_key(destination.type, key) not in keys)
