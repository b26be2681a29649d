"""Resolved profiles. Each setting has a value and the source of the value.

The source is a flag, an environment variable, the profile or a default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from svcctl.api.guard import Guard
from svcctl.errors import ProfileError
from svcctl.io import home
from svcctl.profiles.secrets import MadeOnUse, SecretCommand, SecretFile, SecretValue
from svcctl.profiles.settings import (
    ANY_CLOSE,
    BUILT_IN,
    CONFIG_ENVIRONMENT,
    LOCAL,
    MAPPINGS,
    PROFILE_ENVIRONMENT,
    PROFILE_SETTINGS,
    ProfileSetting,
    setting_of,
)
from svcctl.profiles.store import EMPTY, Fields, ProfilesDocument, ProfileStore
from svcctl.words import nearest

if TYPE_CHECKING:
    from svcctl.dates.zones import Zone


CREDENTIALS = ("auth", "api_key", "api_secret", "token")
"""The names of the settings that identify the user to the service."""
FLAG = "flag --{}"
"""A template of the text that names a flag as the source of a value, such as `flag --timeout`."""
ARGUMENT = "argument {}"
"""A template of the text that names a function's argument as the source of a value, such as `argument timeout`."""


class SettingValue(NamedTuple):
    """The value of a setting, and its source in words: `environment SVCCTL_FORMAT`, `profile prod`, or `default`.

    Only the method `read` reads a secret from a file or a command.
    """

    setting: ProfileSetting
    value: Any
    source: str

    def read(self) -> Any:
        """Return the value. For a secret in a file or from a command, read the file or run the command.

        Raises ProfileError if the file cannot be read, if the command fails, or if the secret is not valid.
        """
        if not isinstance(self.value, SecretValue | SecretFile | SecretCommand | MadeOnUse):
            return self.value
        return self.setting.sendable(self.value.text, self.source)

    def masked(self) -> str | None:
        """Return the value as text for display, with secrets masked; None if the setting has no value."""
        if self.value is None:
            return None
        if isinstance(self.value, SecretFile | SecretCommand):
            return "(not read)"
        text = self.value.written if isinstance(self.value, SecretValue) else str(self.read())
        return self.setting.shown(text)


@dataclass(frozen=True, slots=True)
class Profile:
    """The settings of a profile, with their sources.

    `name` is None if flags or environment variables describe the connection without a profile. The property of a
    required setting, such as `base_url`, raises ProfileError if the setting is missing.
    """

    name: str | None
    name_source: str
    values: Mapping[str, SettingValue]
    mappings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    """The reasons why other profiles in the profiles file cannot be used."""

    @property
    def method(self) -> str:
        """The authorization method: the value of the setting `auth`, or else the method that the credentials imply."""
        if (stated := self._read("auth")) is not None:
            return str(stated)
        only_token = self.values["token"].value is not None and self.values["api_key"].value is None
        return "token" if only_token else "signature"

    @property
    def base_url(self) -> str:
        return self._required("base_url")

    @property
    def api_key(self) -> str:
        return self._required("api_key")

    @property
    def api_secret(self) -> str:
        return self._required("api_secret")

    @property
    def token(self) -> str:
        return self._required("token")

    @property
    def socket(self) -> str | None:
        return self._text("socket")

    @property
    def provisioning_url(self) -> str | None:
        return self._text("provisioning_url")

    @property
    def ca_bundle(self) -> str | None:
        return self._text("ca_bundle")

    @property
    def accepts_any_close(self) -> bool:
        """Whether an answer counts as complete even if TLS ended without close_notify."""
        return self._text("tls_close") == ANY_CLOSE

    @property
    def timeout(self) -> float:
        return float(self._read("timeout"))

    @property
    def retries(self) -> int:
        return int(self._read("retries"))

    @property
    def guard(self) -> Guard:
        read_only, max_rows = self.values["read_only"], self.values["max_rows"]
        return Guard(read_only.read() == "true", read_only.source, max_rows.read(), max_rows.source)

    @property
    def format(self) -> str:
        return str(self._read("format"))

    @property
    def time_zone(self) -> Zone | None:
        from svcctl.dates.zones import named_zone

        text = self._text("time_zone")
        return replace(named_zone(text), source=self.values["time_zone"].source) if text else None

    @property
    def date_format(self) -> str | None:
        return self._text("date_format")

    @property
    def header_names(self) -> Mapping[str, str]:
        """The header names that the profile sets in place of the names in the interface.

        Raises ProfileError for an invalid name.
        """
        names = self.mappings["headers"]
        for key, name in names.items():
            setting_of(f"headers.{key}").new_value_of(name, f"profile {self.name}")
        return names

    @property
    def secret_files(self) -> Sequence[SecretFile]:
        return [value.value for value in self.values.values() if isinstance(value.value, SecretFile)]

    @property
    def runs_a_command(self) -> bool:
        """Whether a secret comes from a command. Such a command may prompt for a password."""
        return any(isinstance(value.value, SecretCommand) for value in self.values.values())

    def check_complete(self) -> None:
        """Read all settings that a connection needs, including secrets. Raises ProfileError if a setting is missing."""
        credentials = ("api_key", "api_secret") if self.method == "signature" else ("token",)
        for name in ("base_url", *credentials):
            self._required(name)

    def shown(self) -> list[tuple[str, str | None, str]]:
        """Return the name, the value and the source of each setting of the profile, with secrets masked."""
        return [
            ("profile", self.name, self.name_source),
            *((value.setting.name, value.masked(), value.source) for value in self.values.values()),
            *(
                (f"{group}.{key}", text, f"profile {self.name}")
                for group, names in self.mappings.items()
                for key, text in names.items()
            ),
        ]

    def _read(self, name: str) -> Any:
        return self.values[name].read()

    def _text(self, name: str) -> str | None:
        value = self._read(name)
        return None if value is None else str(value)

    def _required(self, name: str) -> str:
        if value := self._text(name):
            return value
        setting = PROFILE_SETTINGS[name]
        if self.name is None and self.name_source == ARGUMENT.format("base_url"):
            raise ProfileError(f"base_url is given without {name}", hint="give token, or api_key and api_secret")
        if self.name is None:
            raise ProfileError(
                f"{self.name_source.removeprefix('environment ')} is set but {setting.environment} is not",
                hint="set it too, or choose a profile with --profile",
            )
        field = f"{name}_file" if setting.secret else name
        raise ProfileError(
            f"profile {self.name} has no {name}",
            reason="setting-missing",
            data={"profile": self.name, "field": field, "variable": setting.environment},
        )


def resolve(
    store: ProfileStore,
    *,
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    local: Callable[[str], Fields],
    spelled: str = FLAG,
) -> Profile:
    """Return the profile to use, with all of its settings.

    `flags` contains the options of the command line, such as `profile` and `timeout`, or the arguments of a function
    call. The value of an option that was not given is None. Texts in `flags` are parsed like the texts of environment
    variables. If `flags` contains a `base_url` but no `profile`, no profile is used. Credentials in `flags` replace all
    other credentials. `spelled` is FLAG or ARGUMENT, the form in which messages name a flag.

    `local` is called with the name of a built-in profile, and returns its fields. The value of a field may be a
    function, which is called when the field is used.
    """
    named_by_flag = flags.get("profile") is not None or flags.get("base_url") is not None
    alone = (
        flags.get("base_url") or (environment.get("SVCCTL_BASE_URL") and not environment.get(PROFILE_ENVIRONMENT))
    ) and not flags.get("profile")
    if flags.get("config") is None and (flags.get("profile") or environment.get(PROFILE_ENVIRONMENT)) in BUILT_IN:
        document = EMPTY  # a broken profiles file must not prevent the user from stopping the local service
    elif flags.get("config") is None and alone:
        document = store.before()  # if the environment names a profiles file, the file may be missing
    else:
        document = store.load()
    name, source = profile_in_use(document, flags, environment, spelled)
    fields: Fields = {}
    if name is not None and name in BUILT_IN:
        fields = local(name)
    elif name is not None:
        fields = document.usable(name)
    replaced = any(flags.get(credential) is not None for credential in CREDENTIALS)
    if replaced:
        fields = _without_credentials(fields, flags)
    values = {}
    for setting in PROFILE_SETTINGS.values():
        text = None if setting.environment is None else environment.get(setting.environment) or None
        # If a flag names a profile, the connection is that of the profile, not that of the environment.
        if (setting.connection and named_by_flag) or (setting.name in CREDENTIALS and replaced):
            text = None
        values[setting.name] = _resolve_one(
            setting, flags.get(setting.name), text, fields, str(name), store.path, spelled
        )
    mappings = {key: dict(fields.get(key) or {}) for key in MAPPINGS}
    return Profile(name, source, values, mappings, [error.message for error in document.unusable.values()])


def misspelled_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a message about each environment variable with a name that is similar to a variable of svcctl."""
    variables = [
        PROFILE_ENVIRONMENT,
        CONFIG_ENVIRONMENT,
        *(row.environment for row in PROFILE_SETTINGS.values() if row.environment),
    ]
    for name in environment:
        if name.startswith(_PREFIX) and name not in variables:
            alike = [
                variable.removeprefix(_PREFIX)
                for variable in variables
                if variable[:_PREFIX_CHARS] == name[:_PREFIX_CHARS]
            ]
            near = nearest(name.removeprefix(_PREFIX), alike) if alike else None
            if near is not None:
                yield f"svcctl has no variable {name}; did you mean {_PREFIX}{near}?"


_PREFIX = "SVCCTL_"
_PREFIX_CHARS = len(_PREFIX) + 1
"""The number of first characters that must be equal in an unknown variable's name and in a suggested name."""


def _without_credentials(fields: Fields, flags: Mapping[str, Any]) -> Fields:
    """Return the fields of a profile without its credentials.

    The field `auth` counts as a credential, with one exception: it stays if its value is not `signature` and `flags`
    contains a token. `flags` contains the options of the command line, or the arguments of a call.
    """
    names = {field for name in CREDENTIALS for field in PROFILE_SETTINGS[name].fields}
    if flags.get("token") is not None and fields.get("auth") != "signature":
        names -= {"auth"}
    return {name: value for name, value in fields.items() if name not in names}


def profile_in_use(
    document: ProfilesDocument, flags: Mapping[str, Any], environment: Mapping[str, str], spelled: str = FLAG
) -> tuple[str | None, str]:
    """Return the name of the profile in use, and the source of this name.

    The name is None if flags or environment variables describe the connection without a profile.
    """
    if name := flags.get("profile"):
        return name, spelled.format("profile")
    if flags.get("base_url"):
        return None, spelled.format("base_url")
    if name := environment.get(PROFILE_ENVIRONMENT):
        return name, f"environment {PROFILE_ENVIRONMENT}"
    if environment.get("SVCCTL_BASE_URL"):
        return None, "environment SVCCTL_BASE_URL"
    if document.default:
        return document.default, "profiles file"
    return LOCAL, "built in"


def _resolve_one(
    setting: ProfileSetting, flag: Any, text: str | None, fields: Fields, name: str, path: Path, spelled: str
) -> SettingValue:
    profile = f"profile {name}"
    texts = {
        spelled.format(setting.name): flag,
        f"environment {setting.environment}": text,
        profile: fields.get(setting.name),
    }
    if (strictness := setting.strictness) is not None:
        values = [
            SettingValue(setting, _value_of(setting, str(source_text), source), source)
            for source, source_text in reversed(texts.items())
            if source_text is not None
        ]
        if values:
            return max(values, key=lambda value: strictness(value.value))
    if flag is not None:
        source = spelled.format(setting.name)
        return SettingValue(setting, _value_of(setting, flag, source) if isinstance(flag, str) else flag, source)
    if text is not None:
        source = f"environment {setting.environment}"
        return SettingValue(setting, _value_of(setting, text, source), source)
    if setting.secret:
        if (file := fields.get(f"{setting.name}_file")) is not None:
            return SettingValue(
                setting,
                SecretFile(path.parent / home.expanded_path(file), {"profile": name, "field": f"{setting.name}_file"}),
                f"{profile}, file {file}",
            )
        if (command := fields.get(f"{setting.name}_command")) is not None:
            return SettingValue(setting, SecretCommand(command), f"{profile}, command {command}")
    if callable(make := fields.get(setting.name)):
        return SettingValue(setting, MadeOnUse(make), profile)
    if fields.get(setting.name) is not None:
        return SettingValue(setting, _value_of(setting, str(fields[setting.name]), profile), profile)
    return SettingValue(setting, setting.default_value, "default" if setting.default is not None else "not set")


def _value_of(setting: ProfileSetting, text: str, source: str) -> Any:
    """Parse the text of a setting.

    The text of a credential is checked later, when the credential is used.
    """
    if setting.credential and text:
        return SecretValue(text, f"{setting.name} ({source})")
    return setting.value_of(text, source)
