"""The fields that `profile set` stores. The fields come from arguments, the environment, a file, or prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from svcctl.errors import UsageError
from svcctl.io import yaml_text
from svcctl.io.yaml_text import YamlError
from svcctl.profiles import env_file
from svcctl.profiles.settings import PROFILE_SETTINGS, names_file, setting_of
from svcctl.profiles.store import Fields


def in_arguments(pairs: list[str], secret: Callable[[str], str]) -> dict[str, str]:
    """Return the fields in arguments of the form `FIELD=VALUE`.

    For `FIELD=-`, the function `secret` is called with the name of the field, and returns the value. Raises
    UsageError for an argument of another form. Also raises UsageError if an argument contains a secret, because other
    users can see command lines.
    """
    fields: dict[str, str] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise UsageError(f"'{pair}' is not of the form FIELD=VALUE")
        if key in PROFILE_SETTINGS and PROFILE_SETTINGS[key].secret and text not in ("", "-"):
            raise UsageError(
                f"{key} is a secret, and other users can see command lines",
                hint=f"write {key}=- to read it from standard input, or set {key}_file or {key}_command",
            )
        fields[key] = text
    return {key: secret(key) if text == "-" else text for key, text in fields.items()}


def in_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that environment variables set. Raises UsageError if no variable of svcctl is set."""
    fields = {
        setting.name: setting.cleaned(environment[setting.environment], f"environment {setting.environment}")
        for setting in PROFILE_SETTINGS.values()
        if setting.environment and environment.get(setting.environment)
    }
    if not fields:
        names = ", ".join(setting.environment for setting in PROFILE_SETTINGS.values() if setting.environment)
        raise UsageError("none of the SVCCTL_* variables is set", hint=f"set at least one of {names}")
    return fields


def in_text(text: str, source: str) -> dict[str, str]:
    """Return the fields in the text of a file.

    The text is a YAML or JSON mapping, or has lines of the form `NAME=VALUE`. A name is the name of a field or of an
    environment variable. Raises UsageError for a mistake in the text. The message contains the source and the line.
    """
    by_environment = {setting.environment: setting.name for setting in PROFILE_SETTINGS.values() if setting.environment}
    fields: dict[str, str] = {}
    for line, key, value in (
        env_file.assignments(text, source) if env_file.is_env_file(text) else _in_yaml(text, source)
    ):
        name = by_environment.get(key, key)
        if name in fields:
            raise UsageError(f"{source}, line {line}: {key} is given twice", hint="keep one of them")
        fields[name] = setting_of(name).cleaned(value, f"{source}, line {line}") if value else ""
    if not fields:
        raise UsageError(f"{source} has no fields of a profile", hint="write YAML, JSON or NAME=VALUE lines")
    return fields


def _in_yaml(text: str, source: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the name and the text of each field.

    A field without a value has an empty text, which removes the field from the profile.
    """
    try:
        trees = yaml_text.documents(text)
    except YamlError as error:
        place = source if error.line is None else f"{source}, line {error.line}"
        raise UsageError(f"{place}: {error.problem}", hint=error.hint) from None
    for tree in trees:
        for repeated in tree.repeated:
            raise UsageError(f"{source}, line {repeated.line}: {repeated.problem}", hint="keep one of them")
        for key, value in tree.value.items() if isinstance(tree.value, dict) else ():
            inner = {f"{key}.{part}": text for part, text in value.items()} if isinstance(value, dict) else {key: value}
            for name, text_ in inner.items():
                line = tree.lines[name]
                if not isinstance(text_, str | None):
                    raise UsageError(f"{source}, line {line}: '{name}' must be a single value")
                yield line, name, text_ or ""


def with_absolute_paths(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields with all paths made absolute, because a profile is also used in other directories."""
    return {
        key: str(Path(text).absolute()) if names_file(key) and text and not text.startswith("~") else text
        for key, text in fields.items()
    }


class Ask(Protocol):
    """A function that shows the prompt `what` to a person and returns the answer.

    With `hidden`, the answer is not echoed.
    """

    def __call__(self, what: str, *, hidden: bool) -> str: ...


def ask_missing(stored: Fields, changes: Mapping[str, str], ask: Ask, note: Callable[[str], None]) -> dict[str, str]:
    """Prompt for the fields that a connection needs and that are not set yet.

    `stored` contains the fields of the profile so far, and `changes` contains the fields that the command sets. Returns
    the answers by field. A field without an answer is not in the result. If an answer cannot be used, `note` is called
    with the reason before the next prompt.
    """
    new_fields = {key for key, text in changes.items() if text}
    field_names = {key.removesuffix("_file").removesuffix("_command") for key in (*stored, *new_fields)}
    answers: dict[str, str] = {}

    def answer(key: str, about: str, default: str = "") -> str:
        setting = PROFILE_SETTINGS[key]
        while text := ask(f"{key} ({about})", hidden=setting.secret) or default:
            try:
                text = setting.cleaned(text)
                value = str(setting.parse(text))
                setting.check(text)
                answers[key] = value
                break
            except (ValueError, UsageError) as error:
                note(f"that cannot be used: {error}")
        return text

    def need(key: str) -> None:
        if key not in field_names and not answer(key, PROFILE_SETTINGS[key].meaning):
            note(f"no {key} yet: run the same command to be asked again")

    while not field_names & {"socket", "base_url"} and not answer("base_url", "https://…"):
        note("base_url is needed: it is the URL of the service (Ctrl-C to stop)")
    if "auth" in field_names:
        method = changes.get("auth") or str(stored.get("auth"))
    elif field_names & {"api_key", "api_secret"}:
        method = "signature"
    elif "token" in field_names:
        return answers
    else:
        method = answer("auth", "signature, token or jwt; default signature", "signature")
    for key in ("api_key", "api_secret") if method == "signature" else ("token",):
        need(key)
    return answers
