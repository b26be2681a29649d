"""The destination of a query's rows, from the options `--dest`, `--dest-param` and `--dest-json`.

Secrets are not accepted on the command line, because other users can see command lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svcctl.cli.inputs import text
from svcctl.errors import UsageError
from svcctl.profiles.secrets import SecretFile, secret_text
from svcctl.words import is_secret

if TYPE_CHECKING:
    from svcctl.api.destinations import Destination


def read(
    type_: str | None, assignments: list[str], file: Path | None, note: Callable[[str], None], *, endless: bool
) -> Destination | None:
    """Return the destination; None if the user has given none of the options for destinations.

    `type_` is the value of --dest, and `file` is the value of --dest-json. With --dest, raises UsageError for an
    unknown type, a missing required key, or a value that is not allowed. Without --dest, the type in the file is used
    without these checks. `endless` means that the query has no end.

    Calls `note` with a warning about an unknown type in `file`, and about each unknown key.
    """
    if type_ is None and file is None:
        if assignments:
            raise UsageError("--dest-param needs a destination", hint="name its type with --dest TYPE")
        return None
    from svcctl.api import destinations

    content = {} if file is None else _json_of(file)
    kind = type_ or content.get("type")
    if not isinstance(kind, str):
        raise UsageError(f"the destination in {file} has no type", hint="name it with --dest TYPE")
    typed = {destinations.known_key(kind, key): value for key, value in map(_assignment, assignments)}
    destination = _in_file(kind, content, text.name(file) if file else "").with_params(typed)
    if type_ is not None:
        destinations.check(destination, endless=endless)
    for _, warning in warnings(destination):
        note(warning)
    return destination


def warnings(destination: Destination) -> Iterator[tuple[str | None, str]]:
    """Yield warnings about an unknown type, or about keys that a known type does not have.

    A warning is a pair of a key and a text. The key is None for a warning about the type.
    """
    from svcctl.api import destinations

    kind = destination.type
    if destinations.canonical_type(kind) not in destinations.TYPES:
        error = destinations.unknown_type(kind)
        yield None, f"{error.message} (sent anyway): {error.hint}"
    for key in destinations.unknown_keys(destination):
        meant = destinations.suggest_key(kind, key)
        yield key, f"{kind} has no parameter '{key}' (sent anyway)" + (f": did you mean '{meant}'?" if meant else "")


def _assignment(assignment: str) -> tuple[str, str]:
    key, equals, value = assignment.partition("=")
    if not equals or not key:
        raise UsageError("--dest-param must be of the form K=V")  # the text may be a secret, so it is not repeated
    if value.startswith("@") and not is_secret(key):
        return key, text.read(value[1:], f"the value of {key}").rstrip("\r\n")
    if value == f"@{text.STDIN}":
        return key, secret_text(text.read_bytes(text.STDIN, key), f"{key} (standard input)")
    if value.startswith("@"):
        return key, SecretFile(Path(value[1:])).text
    if is_secret(key):
        raise UsageError(
            f"--dest-param {key} would show a secret in the process list",
            hint=f"give it as {key}=@FILE, or use --dest-json FILE",
        )
    return key, value


def _in_file(kind: str, content: dict[str, Any], source: str) -> Destination:
    """Return the destination in the JSON object of a file.

    The object has the parameters in its member `params`, as an object or a list of objects. Without this member, all
    members except `type` are parameters.
    """
    from svcctl.api.destinations import Destination

    params = content.get("params", {key: value for key, value in content.items() if key != "type"})
    if isinstance(params, dict):
        return Destination(kind, _with_clean_secrets(params, source))
    parts = [_with_clean_secrets(part, source) for part in params]
    return Destination(kind, {key: value for part in parts for key, value in part.items()}, parts)


def _with_clean_secrets(params: dict[str, Any], source: str) -> dict[str, Any]:
    return {
        key: secret_text(value, f"{key} ({source})") if is_secret(key) and isinstance(value, str) else value
        for key, value in params.items()
    }


def _json_of(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(text.read(file, "the destination"))
    except (ValueError, RecursionError):
        content = None
    params = content.get("params", {}) if isinstance(content, dict) else None
    listed = isinstance(params, list) and all(isinstance(part, dict) for part in params)
    if not isinstance(content, dict) or not (listed or isinstance(params, dict)):
        raise UsageError(
            f"{file} is not a destination in JSON", hint='it must be like {"type": "kafka", "params": {"topic": "…"}}'
        )
    return content
