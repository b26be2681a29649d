"""Jobs in files for `job apply`, such as this one.

name: nightly-auth
query: from auth.all where result = "FAIL"
from: 1ad                 # for the first launch
to: 2027-01-01            # left out: the job does not end
time_zone: Europe/Berlin  # of from and to; left out: UTC
destination: {type: Kafka, params: {bootstrap.servers: broker:9092, topic: fails}}
state: running            # or stopped
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from svcctl.api import destinations, job_names
from svcctl.api.destinations import Destination, Form
from svcctl.api.query import QueryRequest
from svcctl.cli.inputs.destination import warnings
from svcctl.cli.inputs.yaml_files import YamlDocument
from svcctl.dates.operators import Moment
from svcctl.dates.range import dates_of
from svcctl.dates.shorthand import depends_on_zone, in_zone, parse_moment
from svcctl.dates.zones import LocalZone, Zone, named_zone
from svcctl.errors import UsageError
from svcctl.io import home
from svcctl.io.yaml_text import PlainText, json_value
from svcctl.profiles.secrets import SecretCommand, SecretFile, secret_text
from svcctl.words import is_secret, json_text, mask, mask_urls

KEYS = ("name", "query", "from", "to", "time_zone", "destination", "state")
RUNNING, STOPPED = "running", "stopped"
Secret = Callable[[], str]
"""A function that returns a secret. It reads the secret on the first call only."""
_TEXT_IN_HASHES = re.compile(r"-?\d+(?:\.\d+[eE]\d+|[eE].+)")
"""A pattern for numbers such as 1e3. They are hashed as text, because YAML 1.1 reads them as text."""
_NAME_OF_FILES = {"s3": "s3.fileName", "hdfs": "file"}
"""The types of destinations that write files, each with the parameter that names the files."""


@dataclass(frozen=True, slots=True)
class WrittenJob:
    """A job in a file. The secrets are read when the job is launched."""

    document: YamlDocument
    name: str
    query: str
    from_: Moment
    to: Moment | None
    type: str
    params: Mapping[str, Any] = field(repr=False)
    """The parameters without the secrets."""
    secrets: Mapping[str, Secret] = field(repr=False)
    hashes: Sequence[str]
    """Three hashes of the definition: with quotes as in the file, with all texts in quotes, and with no quotes.

    An existing job has the same definition as the job in the file if its hash is one of the three.
    """
    state: str
    warnings: Sequence[str]
    """Warnings about an unknown type or unknown parameters of the destination. Both are allowed in a file."""

    @property
    def files(self) -> str | None:
        """The name of the job's output files. None if the job file does not give a name."""
        return _files(destinations.canonical_type(self.type), self.params)

    @property
    def hash(self) -> str:
        return self.hashes[0]

    @property
    def full_name(self) -> str:
        """The friendly name with which the job is launched."""
        return f"{self.name}.{self.hash}"

    @property
    def place(self) -> str:
        """The destination in words, without secrets."""
        shown = {**self.params, **dict.fromkeys(self.secrets, mask())}
        return " ".join([self.type, *(f"{key}={mask_urls(json_text(value))}" for key, value in shown.items())])

    def request(self, from_: Moment | None = None, continues: str | None = None) -> QueryRequest:
        """Return the request that launches the job. Also reads the secrets."""
        read = {key: secret() for key, secret in self.secrets.items()}
        params = {**self.params, **read, "friendlyName": self.full_name}
        return QueryRequest(
            from_=self.from_ if from_ is None else from_,
            to=self.to,
            query=self.query,
            destination=Destination(self.type, params),
            continues=continues,
        )

    @property
    def question(self) -> QueryRequest:
        """A request for the query, with a limit of 0 rows. The service checks the query when it gets the request.

        If the job has an end, the range of the request is empty. Otherwise, the range begins now and has no end.
        """
        from_, to = ("now", None) if self.to is None else (0, 0)
        return QueryRequest(from_, to=to, query=self.query, limit=0)


def hash_of(query: str, end: Moment | None, type_: str, params: Mapping[str, Any]) -> str:
    """Return the hash of a job's definition: six digits for the definition, then two for the name of the output files.

    The definition is the query, the end of its range, and the destination without secrets. An end relative to now is
    hashed as text. URLs are hashed with their secrets masked, because services may show such URLs masked.
    """
    kind, end = destinations.canonical_type(type_), float(end) if isinstance(end, int) else end
    params = {key: mask_urls(value) if isinstance(value, str) else value for key, value in params.items()}
    return _digits([query.strip(), end, kind, sorted(params.items())], 6) + _digits([kind, _files(kind, params)], 2)


def _files(kind: str, params: Mapping[str, Any]) -> str | None:
    name = params.get(_NAME_OF_FILES.get(kind, ""))
    return None if name is None else str(name)


def _digits(value: Any, count: int) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()[:count]


def written(document: YamlDocument, now: datetime) -> WrittenJob:
    """Return the job in a document. Raises UsageError, with the name of the key, for a mistake."""
    document.check_keys(KEYS)
    name = document.needed("name")
    if job_names.split_name(name)[1] is not None or job_names.is_whole(name):
        what = "an ID" if job_names.is_whole(name) else "a name with a hash, which svcctl adds itself"
        raise document.error(f"name '{name}' is {what}", "name")
    if not name.isprintable() or name != name.strip():
        raise document.error("name cannot be printed, or has blanks around it", "name")
    query = document.needed("query")
    zone = _zone(document)
    from_, to = _moment(document, "from", zone), _moment(document, "to", zone)
    if from_ is None:
        raise document.error("'from' is missing")
    try:
        ends = dates_of(from_, to, None, zone, now=now, written=False)
    except UsageError as error:
        raise document.error(f"to: {error.message}", "to", hint=error.hint) from None
    type_, parameters = _destination(document)
    params = _parameters(type_, parameters)
    destination = Destination(type_, {**params.sent, **dict.fromkeys(params.secrets, mask())})
    if needed := destinations.missing(destination):
        keys = " and ".join(parameter.key for parameter in needed)
        example = ", ".join(f"{parameter.key}: {parameter.example}" for parameter in needed)
        raise document.error(f"{type_} needs {keys}", "destination", hint=f"for example: params: {{{example}}}")
    for key, why in destinations.mistakes(destination, endless=ends.to is None):
        raise parameters.error(f"{key} {why}", params.keys[key])
    unknown = [
        f"{document.place(f'destination.params.{params.keys[key]}' if key else 'destination.type')}: {text}"
        for key, text in warnings(destination)
    ]
    state = document.one_of("state", (RUNNING, STOPPED)) or RUNNING
    end = f"{to} {zone.name}" if zone is not None and depends_on_zone(to) else to
    hashes = [hash_of(query, end, type_, hashed) for hashed in params.hashed]
    return WrittenJob(
        document,
        name,
        query,
        from_=ends.from_,
        to=ends.to,
        type=type_,
        params=params.sent,
        secrets=params.secrets,
        hashes=hashes,
        state=state,
        warnings=unknown,
    )


def _zone(document: YamlDocument) -> Zone | None:
    """Return the time zone of the dates in a document.

    Raises UsageError for `local`, because a file must mean the same on every computer.
    """
    text = document.text("time_zone")
    if text is None:
        return None
    try:
        zone = named_zone(text)
    except UsageError as error:
        raise document.error(f"time_zone: {error.message}", "time_zone", hint=error.hint) from None
    if isinstance(zone.clocks, LocalZone):
        raise document.error(
            f"time_zone {text} differs from computer to computer",
            "time_zone",
            hint="name a zone, such as Europe/Berlin",
        )
    return zone


def _moment(document: YamlDocument, key: str, zone: Zone | None) -> Moment | None:
    value = document.text(key)
    if value is None:
        return None
    try:
        return in_zone(parse_moment(value), zone)
    except UsageError as error:
        raise document.error(f"{key}: {error.message}", key, hint=error.hint) from None


def _destination(document: YamlDocument) -> tuple[str, YamlDocument]:
    """Return the type and the parameters of the destination, as they are written in the file."""
    example = "for example: destination: {type: Kafka, params: {bootstrap.servers: host:9092, topic: web}}"
    destination = document.below("destination", hint=example)
    if not destination.fields:
        raise document.error("the destination is missing", "destination", hint=example)
    destination.check_keys(("type", "params"))
    kind = destination.needed("type")
    if meant := destinations.suggest_type(kind):
        raise destination.error(f"unknown destination type '{kind}'", "type", hint=f"did you mean '{meant}'?")
    return kind, destination.below("params")


@dataclass(frozen=True, slots=True)
class _Parameters:
    """The parameters of a destination, by their names."""

    sent: Mapping[str, Any]
    """The parameters that are not secrets, with the values to send."""
    hashed: Sequence[Mapping[str, Any]]
    """The parameters for three hashes: with quotes as in the file, with all texts in quotes, and with no quotes."""
    secrets: Mapping[str, Secret]
    keys: Mapping[str, str]
    """Maps the name of each parameter to its key in the file, such as `sasl.password` to `sasl.password_file`."""


def _parameters(kind: str, document: YamlDocument) -> _Parameters:
    sent: dict[str, Any] = {}
    hashed: dict[str, tuple[Any, Any, Any]] = {}
    secrets: dict[str, Secret] = {}
    keys: dict[str, str] = {}
    for key, value in document.fields.items():
        if not isinstance(value, str):
            raise document.error(f"{key} has no value, or more than one", key)
        secret = _secret(document, key, value)
        name = destinations.known_key(kind, key if secret is None else secret[0])
        if name.casefold() == "friendlyname":
            raise document.error("the job's name is its 'name', not friendlyName", key)
        if name in keys:
            raise document.error(f"{name} is given twice", key)
        keys[name] = key
        if secret is None:
            form = destinations.form_of(kind, name)
            sent[name] = form.read(value) if isinstance(value, PlainText) else value
            if sent[name] is None:
                raise document.error(f"{key} must be {form.wanted}", key)
            hashed[name] = _hashed(form, value, sent[name])
        else:
            secrets[name] = secret[1]
    ways = [{name: values[way] for name, values in hashed.items()} for way in range(3)]
    return _Parameters(sent, ways, secrets, keys)


def _hashed(form: Form, written: str, sent: Any) -> tuple[Any, Any, Any]:
    """Return a parameter's value for each of the three hashes.

    The first value has quotes if the file has them. The second value always has quotes, and the third value never has
    quotes. A text without quotes, such as 5 or true, is hashed as a number or a boolean.
    """
    if form.read is str:
        value = json_value(written)
        text = str(written)
        unquoted = value if json.dumps(value) == written else text
        return unquoted if isinstance(written, PlainText) else text, text, unquoted
    same = str(written) if isinstance(sent, float) and _TEXT_IN_HASHES.fullmatch(written) else sent
    return same, same, same


def _secret(document: YamlDocument, key: str, value: str) -> tuple[str, Secret] | None:
    """Return the name of a secret parameter, and a function that reads the secret; None for other parameters."""
    name, _, way = key.rpartition("_")
    if way in ("file", "command") and is_secret(name):
        return name, cache(partial(_read_secret, document, key, way, value))
    if not is_secret(key):
        return None
    _check_private(document, key)
    written = _read_secret(document, key, "value", value)
    return key, lambda: written


def _read_secret(document: YamlDocument, key: str, way: str, value: str) -> str:
    """Return the secret: a text, the content of a file, or the output of a command.

    The path of a file is relative to the document's folder.
    """
    folder = Path() if document.is_standard_input else Path(document.source).parent
    try:
        if way == "command":
            return SecretCommand(value).text
        if way == "file":
            return SecretFile(folder / home.expanded_path(value)).text
        return secret_text(value, "the secret")
    except UsageError as error:
        raise document.error(f"{key}: {error.message}", key, hint=error.hint) from None


def _check_private(document: YamlDocument, key: str) -> None:
    """Raise UsageError if other users can read a file that contains a secret."""
    if document.is_standard_input:
        return
    mode = stat.S_IMODE(Path(document.source).stat().st_mode)
    if mode & 0o077:
        raise document.error(
            f"{key} is a secret, and others can read this file (mode {mode:04o})",
            key,
            hint=f"name where it is: {key}_file: PATH, or {key}_command: COMMAND; "
            f"or chmod 600 {shlex.quote(document.source)}",
        )
