"""The settings of a profile: a table with a row for each setting."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from svcctl.api.addresses import checked_url
from svcctl.dates.lengths import UNITS, parse_length
from svcctl.errors import ProfileError, UsageError
from svcctl.io.setting import Setting, parse_count
from svcctl.profiles.secrets import secret_text
from svcctl.words import did_you_mean, mask, mask_urls

LOCAL = "local"
"""The name of the built-in profile of the local service."""
LOCAL_URL = "http://localhost"
"""The base URL of the profile `local`. Requests to this URL are sent to a Unix socket."""

BUILT_IN = (LOCAL, "local-reseller")
"""The names of the built-in profiles.

`local-reseller` has the credentials of a reseller at the local service, so that people can try the commands for
domains.
"""

PROFILE_ENVIRONMENT = "SVCCTL_PROFILE"
CONFIG_ENVIRONMENT = "SVCCTL_CONFIG"


@dataclass(frozen=True, slots=True)
class ProfileSetting(Setting):
    """A setting of profiles, such as `base_url` or `timeout`, with the rules for its value."""

    secret: bool = False
    header: bool = False
    """Whether the value is sent in an HTTP header."""
    path: bool = False
    """Whether the value is the path of a file."""
    connection: bool = False
    """Whether the setting describes the connection.

    If the flag `--profile` is given, the environment variable of such a setting is ignored.
    """
    strictness: Callable[[Any], Any] | None = None
    """A function that returns a sort key for a value; None for a setting that is not a limit.

    If a limit is set in several places, the value with the highest key is used. So the environment cannot loosen the
    limit of a profile.
    """
    check: Callable[[str], object] = str
    """A function that raises UsageError for an invalid new value. Stored values are not checked."""
    refusal: ClassVar[type[UsageError]] = ProfileError

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields of a profile that can set this setting.

        A secret has three fields: for a value, for a file and for a command.
        """
        return (self.name, f"{self.name}_file", f"{self.name}_command") if self.secret else (self.name,)

    @property
    def credential(self) -> bool:
        """Whether the value must follow the rule for secrets: one line, without blanks around it."""
        return self.secret or self.header

    def shown(self, text: str) -> str:
        """Return a value for display. Secrets are masked, including secrets in a URL."""
        return mask(text) if self.secret else mask_urls(text)

    def sendable(self, text: str, source: str | None = None) -> str:
        """Return the text of the setting unchanged, after a check.

        Raises ProfileError if the text must be sent in a header but is not printable ASCII.
        """
        if self.header and not (text.isascii() and text.isprintable()):
            where = f" ({source})" if source else ""
            raise ProfileError(f"{self.name}{where} is not printable ASCII, so it cannot be sent in a header")
        return text

    def cleaned(self, text: bytes | str, source: str | None = None) -> str:
        """Return the text to store. Blanks around a credential are removed.

        Raises ProfileError if the credential is not valid.
        """
        if isinstance(text, str) and not self.credential:
            return text
        return self.sendable(secret_text(text, f"{self.name} ({source})" if source else self.name), source)

    def new_value_of(self, text: str, source: str | None = None) -> Any:
        """Parse and check a text that is about to be stored. Raises ProfileError if the text cannot be used."""
        text = self.cleaned(text, source)
        value = self.value_of(text, source)
        try:
            self.check(text)
        except UsageError as error:
            raise ProfileError(f"{self.name} cannot be used: {error.message}", hint=error.hint) from None
        return value


_HOST = r"[\w.-]+(:\d+)?(/.*)?"


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        example = f", as in https://{text}" if re.fullmatch(_HOST, text) else ""
        raise ValueError(f"it must begin with https:// or http://{example}")
    return text.rstrip("/")


def _zone(text: str) -> None:
    from svcctl.dates.zones import named_zone

    named_zone(text)


def _header_name(text: str) -> None:
    from svcctl.api.wire.heads import is_header_name

    if not is_header_name(text):
        raise UsageError(f"'{text}' is not the name of a header")


def _date_format(text: str) -> None:
    from svcctl.dates.operators import DATE_FORMATS

    if text not in DATE_FORMATS:
        raise UsageError(f"unknown date format '{text}'", hint=f"date formats are: {', '.join(DATE_FORMATS)}")


def parse_timeout(text: str) -> float:
    """Return the number of seconds of a timeout such as 90, 90s or 1h30m. A timeout is at most a day.

    Raises ValueError, with the reason, for a text that is not such a timeout.
    """
    return parse_length(text, most=UNITS["d"])


ANY_CLOSE = "any"
"""The value of the setting `tls_close` that accepts any end of a TLS connection."""

AUTH_METHODS = ("signature", "token", "jwt")

PROFILE_SETTINGS = {
    setting.name: setting
    for setting in (
        ProfileSetting("base_url", "URL of the service", _url, "SVCCTL_BASE_URL", connection=True, check=checked_url),
        ProfileSetting(
            "socket", "path of a Unix socket to use instead of the host in base_url", path=True, connection=True
        ),
        ProfileSetting("auth", "kind of credentials", environment="SVCCTL_AUTH", choices=AUTH_METHODS, connection=True),
        ProfileSetting("api_key", "API key of the domain", environment="SVCCTL_API_KEY", header=True, connection=True),
        ProfileSetting("api_secret", "API secret", environment="SVCCTL_API_SECRET", secret=True, connection=True),
        ProfileSetting(
            "token", "bearer token or JWT", environment="SVCCTL_TOKEN", secret=True, header=True, connection=True
        ),
        ProfileSetting(
            "provisioning_url",
            "URL for domains and roles, if it differs from base_url",
            _url,
            connection=True,
            check=checked_url,
        ),
        ProfileSetting("ca_bundle", "file of CA certificates to trust", path=True, connection=True),
        ProfileSetting(
            "tls_close",
            "whether TLS connections must end with close_notify",
            choices=("notify", ANY_CLOSE),
            default="notify",
        ),
        ProfileSetting("timeout", "how long to wait for the network", parse_timeout, "SVCCTL_TIMEOUT", default="1m"),
        ProfileSetting(
            "retries", "how many times a failed request is sent again", parse_count, "SVCCTL_RETRIES", default="4"
        ),
        ProfileSetting(
            "read_only",
            "refuse operations that change something",
            environment="SVCCTL_READ_ONLY",
            choices=("true", "false"),
            default="false",
            strictness=lambda value: value == "true",
        ),
        ProfileSetting(
            "max_rows",
            "maximum number of rows in an answer",
            partial(parse_count, least=1),
            "SVCCTL_MAX_ROWS",
            strictness=lambda value: -value,
        ),
        ProfileSetting("format", "output format", environment="SVCCTL_FORMAT", default="auto"),
        ProfileSetting("time_zone", "time zone of dates, such as GMT+2", check=_zone),
        ProfileSetting("date_format", "date format of csv and tsv: default, sql or iso", check=_date_format),
    )
}
MAPPINGS = {
    "headers": ("apikey", "sign", "timestamp", "reseller_apikey"),
    "paths": ("query", "job", "jobs", "domain"),
}
"""The headers and paths that a profile can rename. Their fields are `headers.<name>` and `paths.<name>`."""


def setting_of(field: str) -> ProfileSetting:
    """Return the setting for a field of a profile, including the fields `headers.<name>` and `paths.<name>`."""
    checks: Mapping[str, Callable[[str], object]] = {"headers": _header_name}
    return PROFILE_SETTINGS.get(field) or ProfileSetting(field, "", check=checks.get(field.partition(".")[0], str))


def names_file(field: str) -> bool:
    """Return whether the value of a field is the path of a file."""
    return any(
        (setting.path and field == setting.name) or (setting.secret and field == f"{setting.name}_file")
        for setting in PROFILE_SETTINGS.values()
    )


def known_fields() -> list[str]:
    """Return the names of all fields of a profile, including `headers.<name>` and `paths.<name>`."""
    dotted = [f"{group}.{key}" for group, keys in MAPPINGS.items() for key in keys]
    return [name for setting in PROFILE_SETTINGS.values() for name in setting.fields] + dotted


def unknown_field(key: str, where: str) -> ProfileError:
    names = known_fields()
    hint = did_you_mean(key, names) or f"fields are: {', '.join(names)}"
    return ProfileError(f"unknown field '{key}' in {where}", hint=hint)
