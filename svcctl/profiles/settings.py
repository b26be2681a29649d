"""The settings of a profile: a row for each, with the function that parses its text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from svcctl.api.addresses import checked_url
from svcctl.dates.lengths import UNITS, parse_length
from svcctl.dates.operators import DATE_FORMATS
from svcctl.errors import ProfileError, UsageError
from svcctl.profiles.secrets import mask
from svcctl.words import did_you_mean

LOCAL = "local"
"""The built-in profile of the local service."""
LOCAL_URL = "http://localhost"
"""The base URL of the local profile, whose requests go to its socket."""

BUILT_IN = (LOCAL, "local-reseller")
"""The built-in profiles; the second has a reseller's credentials at the local service, to try domains with."""

PROFILE_ENVIRONMENT = "SVCCTL_PROFILE"
CONFIG_ENVIRONMENT = "SVCCTL_CONFIG"


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing a profile can set. `parse` turns text into the value or raises ValueError with the reason."""

    name: str
    meaning: str
    parse: Callable[[str], Any] = str
    environment: str | None = None
    default: Any = None
    secret: bool = False
    path: bool = False
    """Whether the value is the path of a file."""
    choices: tuple[str, ...] = ()
    """The values that completion offers, for a setting that has only a few."""
    connection: bool = False
    """Whether the setting is part of the connection; `--profile` makes the environment's value of it ignored."""
    check: Callable[[str], object] = str
    """Raises UsageError for a new value that would fail when used. Stored values are not checked: one bad value in a
    profile must not stop the others."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a profile that can hold the setting: a secret may also come from a file or a command."""
        return (self.name, f"{self.name}_file", f"{self.name}_command") if self.secret else (self.name,)

    def value_of(self, text: str, source: str | None) -> Any:
        """Parse a text. ProfileError when it cannot be used, naming the text's source if one is given."""
        try:
            return self.parse(text)
        except ValueError as error:
            shown = mask(text) if self.secret else text
            where = f" ({source})" if source else ""
            raise ProfileError(f"{self.name} '{shown}'{where} cannot be used: {error}") from None

    def new_value_of(self, text: str, source: str | None = None) -> Any:
        """Parse and check a text that is to be stored; ProfileError when it cannot be used."""
        value = self.value_of(text, source)
        try:
            self.check(text)
        except UsageError as error:
            raise ProfileError(f"{self.name} cannot be used: {error.message}", hint=error.hint) from None
        return value


_HOST = re.compile(r"[\w.-]+(:\d+)?(/.*)?")


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        example = f", as in https://{text}" if _HOST.fullmatch(text) else ""
        raise ValueError(f"it must begin with https:// or http://{example}")
    return text.rstrip("/")


def _zone(text: str) -> None:
    from svcctl.dates.shorthand import named_zone

    named_zone(text)


def _date_format(text: str) -> None:
    if text not in DATE_FORMATS:
        raise UsageError(f"unknown date format '{text}'", hint=f"date formats are: {', '.join(DATE_FORMATS)}")


def parse_timeout(text: str) -> float:
    """The seconds of a timeout. ValueError with the reason for a text that is none."""
    return parse_length(text, least=0.001, most=UNITS["d"])


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
        Setting("base_url", "URL of the service", _url, "SVCCTL_BASE_URL", connection=True, check=checked_url),
        Setting("socket", "path of a Unix socket to use instead of the host", path=True, connection=True),
        Setting("auth", "signature, token or jwt", _method, "SVCCTL_AUTH", choices=AUTH_METHODS, connection=True),
        Setting("api_key", "API key of the domain", environment="SVCCTL_API_KEY", connection=True),
        Setting("api_secret", "API secret", environment="SVCCTL_API_SECRET", secret=True, connection=True),
        Setting("token", "bearer token or JWT", environment="SVCCTL_TOKEN", secret=True, connection=True),
        Setting(
            "provisioning_url", "URL for domains and roles, if different", _url, connection=True, check=checked_url
        ),
        Setting("ca_bundle", "file of CA certificates to trust", path=True, connection=True),
        Setting("timeout", "how long to wait for the network, as 90s", parse_timeout, "SVCCTL_TIMEOUT", default=60.0),
        Setting("retries", "times a failed request is retried", _count, "SVCCTL_RETRIES", default=4),
        Setting("format", "output format", environment="SVCCTL_FORMAT", default="auto"),
        Setting("time_zone", "time zone of dates, such as GMT+2", check=_zone),
        Setting("date_format", "date format of csv and tsv: default, sql or iso", check=_date_format),
    )
}
MAPPINGS = {
    "headers": ("apikey", "sign", "timestamp", "reseller_apikey"),
    "paths": ("query", "job", "jobs", "domain"),
}
"""Headers and paths that a deployment may rename: `headers.<name>` and `paths.<name>`."""


def names_file(field: str) -> bool:
    """Whether the value of a field is the path of a file."""
    return any(
        (one.path and field == one.name) or (one.secret and field == f"{one.name}_file") for one in SETTINGS.values()
    )


def known_fields() -> list[str]:
    """The names of all fields of a profile, with `headers` and `paths` by their dotted names."""
    dotted = [f"{group}.{key}" for group, keys in MAPPINGS.items() for key in keys]
    return [name for setting in SETTINGS.values() for name in setting.fields] + dotted


def unknown_field(key: str, where: str) -> ProfileError:
    known = known_fields()
    hint = did_you_mean(key, known) or f"fields are: {', '.join(known)}"
    return ProfileError(f"unknown field '{key}' in {where}", hint=hint)
