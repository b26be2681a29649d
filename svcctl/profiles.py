"""The credential store, and what a setting is after flag, environment, profile and default have had their say.

A setting is a row of `SETTINGS`. Values are looked up in one order (flag, environment, profile, default), and each
remembers where it came from. A secret is read only when it is used: its `*_command` runs at that moment, not before.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from svcctl.api.suggest import did_you_mean
from svcctl.errors import ProfileError, UsageError

LOCAL = "local"
"""The built-in profile: the service of one's own on this machine."""

BUILT_IN = (LOCAL, "local-reseller")
"""The built-in profiles: the second has a reseller's credentials at the same service, to try domains with."""

SECRET_COMMAND_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing a profile can say. `parse` turns text into the value or raises ValueError with the reason."""

    name: str
    meaning: str
    parse: Callable[[str], Any] = str
    environment: str | None = None
    default: Any = None
    secret: bool = False
    connection: bool = False
    """Says where requests go and with which credentials: an explicit `--profile` keeps the environment out of these."""


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("it must begin with https:// or http://")
    return text.rstrip("/")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise ValueError("it is not a number of seconds") from None
    if not 0 < seconds <= 86400:
        raise ValueError("it must be more than 0 and at most 86400 seconds")
    return seconds


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError("it is not a whole number")
    return int(text)


def _method(text: str) -> str:
    if text not in AUTH_METHODS:
        raise ValueError(f"it must be one of {', '.join(AUTH_METHODS)}")
    return text


AUTH_METHODS = ("signature", "token", "jwt")

SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("base_url", "where the service answers", _url, "SVCCTL_BASE_URL", connection=True),
        Setting("socket", "path of a Unix socket to connect to instead of the host", connection=True),
        Setting("auth", "signature, token or jwt", _method, "SVCCTL_AUTH", connection=True),
        Setting("api_key", "API key of the domain", environment="SVCCTL_API_KEY", connection=True),
        Setting("api_secret", "API secret", environment="SVCCTL_API_SECRET", secret=True, connection=True),
        Setting("token", "token for token and jwt", environment="SVCCTL_TOKEN", secret=True, connection=True),
        Setting("provisioning_url", "where domains and roles answer, if elsewhere", _url, connection=True),
        Setting("ca_bundle", "file of certificates to trust", connection=True),
        Setting("timeout", "seconds to wait for the network", _seconds, "SVCCTL_TIMEOUT", default=60.0),
        Setting("retries", "times a failed request is tried again", _count, "SVCCTL_RETRIES", default=4),
        Setting("format", "output format", environment="SVCCTL_FORMAT", default="auto"),
        Setting("time_zone", "time zone of dates, as GMT+2"),
        Setting("date_format", "date format of csv and tsv: default, sql or iso"),
    )
}
MAPPINGS = {
    "headers": ("apikey", "sign", "timestamp", "reseller_apikey"),
    "paths": ("query", "job", "jobs", "domain"),
}
"""Settings that rename what a deployment names differently: `headers.<name>` and `paths.<name>`."""

PROFILE_ENVIRONMENT = "SVCCTL_PROFILE"
CONFIG_ENVIRONMENT = "SVCCTL_CONFIG"


@dataclass(frozen=True, slots=True)
class Value:
    """A setting's value and who won, in words: `flag`, `environment SVCCTL_FORMAT`, `profile prod`, `default`.

    A secret is held as a function that reads it, so that showing a profile neither runs commands nor prints secrets.
    """

    setting: Setting
    value: Any
    source: str

    def read(self) -> Any:
        """The value itself; ProfileError when a secret's file or command fails."""
        return self.value() if self.setting.secret and callable(self.value) else self.value

    def masked(self) -> str | None:
        """The value as it may be shown; None when nothing says it."""
        if self.value is None or not self.setting.secret:
            return None if self.value is None else str(self.value)
        if callable(self.value):
            return "(not read)"
        return mask(self.value)


def mask(secret: str) -> str:
    """Four stars, and the last four characters of a secret long enough to spare them."""
    return "****" + (secret[-4:] if len(secret) >= 16 else "")


@dataclass(frozen=True, slots=True)
class Profile:
    """A resolved profile: every setting with its source."""

    name: str | None
    name_source: str
    values: Mapping[str, Value]
    mappings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """A setting's value, None when nothing says it."""
        return self.values[name].read()

    def method(self) -> str:
        """The authorization method: as set, else by the credentials there are."""
        if stated := self.get("auth"):
            return str(stated)
        return (
            "token" if self.values["token"].value is not None and self.values["api_key"].value is None else "signature"
        )


@dataclass(frozen=True, slots=True)
class Store:
    """The profiles file: `default`, and `profiles` by name; mode 0600, refused when others can read it."""

    path: Path

    def load(self) -> dict[str, Any]:
        """The file's document with both keys present; ProfileError when it cannot be trusted or understood."""
        try:
            mode = self.path.stat().st_mode
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {"profiles": {}}
        except (OSError, UnicodeDecodeError) as error:
            raise ProfileError(f"profiles file {self.path} cannot be read: {_reason(error)}") from None
        if stat.S_IMODE(mode) & 0o077:
            raise ProfileError(
                f"profiles file {self.path} can be read by others (mode {stat.S_IMODE(mode):04o})",
                hint=f"close it with: chmod 600 '{self.path}'",
            )
        return _check_document(text, self.path)

    def save(self, document: Mapping[str, Any]) -> None:
        """Replace the file in one step."""
        import tempfile

        import yaml

        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, part = tempfile.mkstemp(dir=self.path.parent, prefix=".config-")  # mkstemp creates with mode 0600
        except OSError as error:
            raise ProfileError(f"profiles file {self.path} cannot be written: {_reason(error)}") from None
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                yaml.safe_dump(dict(document), stream, sort_keys=False, allow_unicode=True)
            Path(part).replace(self.path)
        except OSError as error:
            raise ProfileError(f"profiles file {self.path} cannot be written: {_reason(error)}") from None
        finally:
            with suppress(FileNotFoundError):
                Path(part).unlink()

    def names(self) -> list[str]:
        """The profiles in the file, then the built-in ones."""
        return [*self.load()["profiles"], *BUILT_IN]

    def set(self, name: str, changes: Mapping[str, str]) -> None:
        """Change fields of a profile, made if it is new; an empty value removes its field."""
        if name in BUILT_IN or not name or not name.isprintable() or "/" in name:
            why = ": it is built in" if name in BUILT_IN else ""
            raise ProfileError(f"profile name '{name}' cannot be used{why}")
        document = self.load()
        fields = dict(document["profiles"].get(name) or {})
        for key, text in changes.items():
            _change(fields, key, text)
        _check_fields(fields, f"profile {name}")
        document["profiles"][name] = fields
        self.save(document)

    def use(self, name: str) -> None:
        """Make a profile the default one."""
        document = self.load()
        if name not in (*document["profiles"], *BUILT_IN):
            raise self.unknown(name, document)
        self.save({**document, "default": name})

    def remove(self, name: str) -> None:
        """Forget a profile."""
        document = self.load()
        if name not in document["profiles"]:
            raise self.unknown(name, document)
        del document["profiles"][name]
        if document.get("default") == name:
            del document["default"]
        self.save(document)

    def unknown(self, name: str, document: Mapping[str, Any]) -> ProfileError:
        known = ", ".join((*document["profiles"], *BUILT_IN))
        return ProfileError(
            f"no profile '{name}'", hint=f"there are: {known}; make one with 'svcctl profile set {name}'"
        )


def default_store(environment: Mapping[str, str], config: Path | None) -> Store:
    """The store at `--config`, else SVCCTL_CONFIG, else the platform's config directory."""
    if config is None and (named := environment.get(CONFIG_ENVIRONMENT)):
        config = Path(named)
    if config is None:
        import platformdirs

        config = platformdirs.user_config_path("svcctl") / "config.yaml"
    return Store(config.expanduser())


def resolve(
    store: Store,
    *,
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    local: Callable[[str], Mapping[str, str]],
) -> Profile:
    """Every setting by precedence: flag, environment, profile, default.

    `flags` holds what was given on the command line (`profile`, `timeout`, …; None for not given). `local` yields the
    fields of a built-in profile, and is called only when one is chosen.
    """
    document = store.load()
    name, source = _choose(document, flags, environment)
    fields: Mapping[str, Any] = {}
    if name is not None and name in BUILT_IN:
        fields = local(name)
    elif name is not None:
        if name not in document["profiles"]:
            raise store.unknown(name, document)
        fields = document["profiles"][name] or {}
    # A profile named on the command line is a flag, and a flag is never beaten by the environment.
    named_by_flag = flags.get("profile") is not None
    values = {}
    for setting in SETTINGS.values():
        text = None if setting.environment is None else environment.get(setting.environment) or None
        if setting.connection and named_by_flag:
            text = None
        values[setting.name] = _resolve_one(
            setting, flags.get(setting.name), text, fields, f"profile {name}", store.path
        )
    mappings = {key: dict(fields.get(key) or {}) for key in MAPPINGS}
    return Profile(name, source, values, mappings)


def _choose(
    document: Mapping[str, Any], flags: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[str | None, str]:
    if name := flags.get("profile"):
        return name, "flag --profile"
    if name := environment.get(PROFILE_ENVIRONMENT):
        return name, f"environment {PROFILE_ENVIRONMENT}"
    if environment.get("SVCCTL_BASE_URL"):
        return None, "environment SVCCTL_BASE_URL"
    if name := document.get("default"):
        return name, "profiles file"
    return LOCAL, "built in"


def _resolve_one(
    setting: Setting, flag: Any, text: str | None, fields: Mapping[str, Any], profile: str, path: Path
) -> Value:
    if flag is not None:
        return Value(setting, flag, f"flag --{setting.name.replace('_', '-')}")
    if text is not None:
        return Value(
            setting, _parse(setting, text, f"environment {setting.environment}"), f"environment {setting.environment}"
        )
    if setting.secret:
        if (file := fields.get(f"{setting.name}_file")) is not None:
            return Value(setting, lambda: _read_secret_file(file, path.parent), f"{profile}, file {file}")
        if (command := fields.get(f"{setting.name}_command")) is not None:
            return Value(setting, lambda: _run_secret_command(command), f"{profile}, command {command}")
    if fields.get(setting.name) is not None:
        return Value(setting, _parse(setting, str(fields[setting.name]), profile), profile)
    return Value(setting, setting.default, "default" if setting.default is not None else "not set")


def _parse(setting: Setting, text: str, source: str) -> Any:
    try:
        return setting.parse(text)
    except ValueError as error:
        shown = mask(text) if setting.secret else text
        raise ProfileError(f"{setting.name} '{shown}' ({source}) cannot be used: {error}") from None


def _read_secret_file(file: str, base: Path) -> str:
    path = base / Path(file).expanduser()
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"secret file {path} cannot be read: {_reason(error)}") from None


def _run_secret_command(command: str) -> str:
    import subprocess

    try:
        done = subprocess.run(
            command, shell=True, stdout=subprocess.PIPE, text=True, timeout=SECRET_COMMAND_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ProfileError(f"secret command '{command}' did not end in {SECRET_COMMAND_SECONDS} s") from None
    if done.returncode != 0 or not done.stdout.strip():
        what = f"exited {done.returncode}" if done.returncode else "printed nothing"
        raise ProfileError(f"secret command '{command}' {what}")
    return done.stdout.strip()


def _check_document(text: str, path: Path) -> dict[str, Any]:
    import yaml

    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise ProfileError(f"profiles file {path}{where} is not YAML") from None
    if not isinstance(document, dict) or not isinstance(document.get("profiles") or {}, dict):
        raise ProfileError(f"profiles file {path} must hold 'profiles:' with a name and its fields each")
    document["profiles"] = document.get("profiles") or {}
    for name, fields in document["profiles"].items():
        if not isinstance(fields or {}, dict):
            raise ProfileError(f"profile {name} in {path} must be a mapping of fields")
        _check_fields(fields or {}, f"profile {name} in {path}")
    return document


def _known_fields() -> list[str]:
    """Every field name a profile may hold, `headers` and `paths` by their dotted names."""
    names = []
    for setting in SETTINGS.values():
        names.append(setting.name)
        if setting.secret:
            names += [f"{setting.name}_file", f"{setting.name}_command"]
    return names + [f"{group}.{key}" for group, keys in MAPPINGS.items() for key in keys]


def _unknown_field(key: str, where: str) -> ProfileError:
    known = _known_fields()
    hint = did_you_mean(key, known) or f"fields are: {', '.join(known)}"
    return ProfileError(f"{where} has an unknown field '{key}'", hint=hint)


def _check_fields(fields: Mapping[str, Any], where: str) -> None:
    known = set(_known_fields())
    for key, value in fields.items():
        if key in MAPPINGS:
            if not isinstance(value, dict):
                raise ProfileError(f"{where}: '{key}' must be a mapping of names")
            for inner in value:
                if inner not in MAPPINGS[key]:
                    raise _unknown_field(f"{key}.{inner}", where)
        elif key not in known:
            raise _unknown_field(key, where)
        elif not isinstance(value, str | int | float):
            raise ProfileError(f"{where}: '{key}' must be a single value")
    for setting in SETTINGS.values():
        given = [key for key in (setting.name, f"{setting.name}_file", f"{setting.name}_command") if key in fields]
        if len(given) > 1:
            raise ProfileError(f"{where} sets both {given[0]} and {given[1]}", hint="keep one of them")
        if setting.name in fields:
            _parse(setting, str(fields[setting.name]), where)


def _change(fields: dict[str, Any], key: str, text: str) -> None:
    if key not in _known_fields():
        raise _unknown_field(key, "a profile")
    group, _, inner = key.partition(".")
    target = fields
    if inner:
        target = fields[group] = dict(fields.get(group) or {})
    if text:
        for setting in SETTINGS.values():
            variants = (setting.name, f"{setting.name}_file", f"{setting.name}_command")
            if setting.secret and key in variants:
                for variant in variants:
                    fields.pop(variant, None)
        setting = SETTINGS.get(key, Setting(key, ""))
        value = _parse(setting, text, f"{key}={text}" if not setting.secret else key)
        target[inner or key] = value
    else:
        target.pop(inner or key, None)
        if inner and not target:
            del fields[group]


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def require(profile: Profile, name: str) -> str:
    """A connection setting that this profile must have; ProfileError says how to give it."""
    value = profile.get(name)
    if value in (None, ""):
        setting = SETTINGS[name]
        where = f"profile {profile.name}" if profile.name else "the environment"
        how = f"'svcctl profile set {profile.name} {name}{'_file' if setting.secret else ''}=…'" if profile.name else ""
        parts = [
            part
            for part in (how, f"the environment variable {setting.environment}" if setting.environment else "")
            if part
        ]
        raise ProfileError(f"{where} has no {name}", hint="give it with " + " or ".join(parts))
    return str(value)


def parse_assignments(pairs: list[str]) -> dict[str, str]:
    """`FIELD=VALUE` words as a mapping; a secret's value is refused, since other users see command lines."""
    changes: dict[str, str] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise UsageError(f"'{pair}' is not of the form FIELD=VALUE")
        if key in SETTINGS and SETTINGS[key].secret and text not in ("", "-"):
            raise UsageError(
                f"{key} is a secret, and other users can see command lines",
                hint=f"write {key}=- to read it from standard input, or set {key}_file or {key}_command",
            )
        changes[key] = text
    return changes


def fields_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The fields that the environment gives. UsageError when it gives none."""
    found = {
        setting.name: environment[setting.environment]
        for setting in SETTINGS.values()
        if setting.environment and environment.get(setting.environment)
    }
    if not found:
        names = ", ".join(setting.environment for setting in SETTINGS.values() if setting.environment)
        raise UsageError("the environment gives nothing for a profile", hint=f"it would be one of {names}")
    return found


_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z_.]*)=(.*)")


def read_fields(file: Path) -> dict[str, str]:
    """The fields in a file: a mapping in YAML or JSON, or lines `NAME=VALUE`; names as here or in the environment."""
    import sys

    import yaml

    try:
        text = sys.stdin.read() if str(file) == "-" else file.expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"file {file} cannot be read: {_reason(error)}") from None
    lines = [line.strip() for line in text.split("\n") if line.strip() and not line.strip().startswith("#")]
    matches = [match for match in map(_LINE.fullmatch, lines) if match]
    if lines and len(matches) == len(lines):
        given: Any = {match[1]: match[2].strip().strip("\"'") for match in matches}
    else:
        try:
            given = yaml.safe_load(text)
        except yaml.YAMLError:
            given = None
    if not isinstance(given, dict) or not given:
        raise UsageError(f"file {file} holds no fields of a profile", hint="give YAML, JSON or lines NAME=VALUE")
    by_environment = {setting.environment: setting.name for setting in SETTINGS.values() if setting.environment}
    fields: dict[str, str] = {}
    for key, value in given.items():
        inner = value.items() if isinstance(value, dict) else ((None, value),)
        for part, content in inner:
            name = by_environment.get(str(key), str(key)) + (f".{part}" if part else "")
            fields[name] = "" if content is None else str(content)
    return fields
