"""The profiles file: YAML with `default:` and `profiles:`.

The mode of the file is 0600. A file that other users can read is refused.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from svcctl.errors import Advice, CommandLine, ProfileError, UsageError, reason
from svcctl.io import home
from svcctl.io.files import lock, write
from svcctl.profiles.settings import (
    BUILT_IN,
    CONFIG_ENVIRONMENT,
    LOCAL,
    LOCAL_URL,
    MAPPINGS,
    PROFILE_SETTINGS,
    known_fields,
    setting_of,
    unknown_field,
)
from svcctl.words import choices

if TYPE_CHECKING:
    from svcctl.io.yaml_text import Tree

Fields = Mapping[str, Any]
"""The fields of a profile in the file.

Most values are texts. The value of `headers` and of `paths` is a mapping of texts.
"""


class ProfilesDocument(NamedTuple):
    """The content of the profiles file. `extra` contains the top-level keys that svcctl does not know."""

    profiles: Mapping[str, Fields]
    default: str | None
    extra: Mapping[str, Any]
    unusable: Mapping[str, ProfileError]
    """The profiles that cannot be used, each with the error to raise when the profile is used.

    A repeated key makes a profile ambiguous. Other profiles have an unknown field or an invalid value.
    """
    ambiguous: Collection[str] = ()
    """The names of the ambiguous profiles. They prevent any change of the file, which would lose a key."""

    @property
    def names(self) -> list[str]:
        """The names of the stored profiles, followed by the names of the built-in profiles."""
        return [*self.profiles, *BUILT_IN]

    def fields(self, name: str) -> Fields:
        """Return the fields of a profile; empty for a new or a built-in profile."""
        return self.profiles.get(name, {})

    def method(self, name: str) -> str:
        """Return a profile's authorization method: its field `auth`, or else the method that its credentials imply."""
        fields = self.fields(name)
        only_token = any(key.startswith("token") for key in fields) and "api_key" not in fields
        return str(fields.get("auth") or ("token" if only_token else "signature"))

    def stored(self, name: str) -> Fields:
        """Return the fields of a stored profile. Raises ProfileError for an unknown or a built-in profile."""
        if name in BUILT_IN:
            raise ProfileError(f"profile {name} is built in and cannot be deleted")
        if name not in self.profiles:
            raise self.unknown(name)
        return self.profiles[name]

    def usable(self, name: str) -> Fields:
        """Return the fields of a stored profile.

        Raises ProfileError for an unknown, a built-in or an unusable profile.
        """
        fields = self.stored(name)
        if name in self.unusable:
            raise self.unusable[name]
        return fields

    def at(self, base_url: str) -> list[str]:
        """Return the names of the profiles with this base URL.

        The built-in profile `local` can be one of them.
        """
        stored = [name for name, fields in self.profiles.items() if fields.get("base_url", "").rstrip("/") == base_url]
        return [*stored, *([LOCAL] if base_url == LOCAL_URL else [])]

    def unknown(self, name: str) -> ProfileError:
        return ProfileError(
            f"no profile '{name}'",
            hint=f"profiles are: {choices(self.names)}",
            reason="unknown-profile",
            data={"profile": name},
        )


EMPTY = ProfilesDocument({}, None, {}, {})
"""The content of a profiles file that does not exist or is empty."""


class ProfileStore(NamedTuple):
    """The profiles file at a path. If the user has named the path, the file must exist when it is read."""

    path: Path
    origin: str | None = None
    """The option or variable with which the user has named the path; None for the default path."""
    lock_patience: float = 10.0
    """The maximum number of seconds to wait while another process is changing the file."""

    @property
    def is_missing(self) -> bool:
        """Whether the user has named a file that does not exist."""
        try:
            self.path.stat()
        except FileNotFoundError:
            return self.origin is not None
        except OSError:
            pass
        return False

    def load(self) -> ProfilesDocument:
        """Return the content of the file.

        The content is empty if the file does not exist and the user has not named a file. Raises ProfileError if the
        file cannot be read or parsed, or if other users can read it. Also raises ProfileError if the user has named a
        file that does not exist.
        """
        try:
            mode = self.path.stat().st_mode
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            if self.origin:
                raise ProfileError(
                    f"profiles file {self.path} does not exist",
                    hint=f"{self.origin} names this file",
                    reason="no-profiles-file",
                ) from None
            return EMPTY
        except (OSError, UnicodeDecodeError) as error:
            raise ProfileError(f"profiles file {self.path} cannot be read: {reason(error)}") from None
        if stat.S_IMODE(mode) & 0o077:
            raise ProfileError(
                f"profiles file {self.path} can be read by others (mode {stat.S_IMODE(mode):04o})",
                hint=Advice("close it with: ", CommandLine(f"chmod 600 {shlex.quote(str(self.path))}")),
            )
        return _parsed(text, self.path)

    def before(self) -> ProfilesDocument:
        """Return the content of the file before a change; empty if the file does not exist yet."""
        return self._replace(origin=None).load()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the file during a change. Raises Locked if another process holds the lock for too long.

        The lock is in the folder of the file. The folder is created if it does not exist.
        """
        directory = home.expanded_path(self.path, CONFIG_ENVIRONMENT).parent
        with self._writing():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK):  # the later writing fails and reports the reason
            yield
            return
        handle = lock(
            directory / f".{self.path.name}.lock",
            f"profiles file {self.path} is being changed",
            patience=self.lock_patience,
        )
        try:
            yield
        finally:
            os.close(handle)

    def set(self, name: str, changes: Mapping[str, str]) -> None:
        """Change fields of a profile, or create the profile. An empty value removes its field."""
        if name in BUILT_IN:
            raise ProfileError(f"profile {name} is built in and cannot be changed", hint="choose another name")
        if not name or not name.isprintable() or "/" in name:
            raise ProfileError(f"'{name}' is not a valid profile name", hint="choose another name")

        def changed() -> ProfilesDocument:
            document = self.before()
            fields = dict(document.fields(name))
            for key, text in changes.items():
                _change(fields, key, text)
            _check_fields(fields, lambda key: f"profile {name}")
            return document._replace(profiles={**document.profiles, name: fields})

        self._save(changed)

    def use(self, name: str) -> None:
        """Make a profile the default."""

        def changed() -> ProfilesDocument:
            document = self.load()
            if name not in document.names:
                raise document.unknown(name)
            return document._replace(default=name)

        self._save(changed)

    def remove(self, name: str) -> None:
        """Delete a profile."""

        def changed() -> ProfilesDocument:
            document = self.load()
            document.stored(name)
            profiles = {other: fields for other, fields in document.profiles.items() if other != name}
            return document._replace(profiles=profiles, default=None if document.default == name else document.default)

        self._save(changed)

    def _save(self, changed: Callable[[], ProfilesDocument]) -> None:
        """Apply a change and write the file.

        The change is first tried without the lock, so that an invalid change creates neither the folder nor the lock
        file. Raises ProfileError if the file contains an ambiguous profile.
        """
        from svcctl.io.yaml_text import yaml_of

        document = changed()
        for name in document.ambiguous:
            if name in document.profiles:
                raise document.unusable[name]
        with self._locked():
            document = changed()
            content = {
                **document.extra,
                **({} if document.default is None else {"default": document.default}),
                "profiles": dict(document.profiles),
            }
            self._write(yaml_of(content))

    def _write(self, text: str) -> None:
        with self._writing():
            write(self.path, text.encode(), private=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Convert an OSError that the `with` block raises to a ProfileError."""
        try:
            yield
        except OSError as error:
            raise ProfileError(f"profiles file {self.path} cannot be written: {reason(error)}") from None


def default_store(environment: Mapping[str, str], config: Path | None, origin: str = "--config") -> ProfileStore:
    """Return the store at the path `config`, or else at SVCCTL_CONFIG, or else in the platform's config directory.

    `origin` is the name of the option that sets `config`.
    """
    if config is None and (path := environment.get(CONFIG_ENVIRONMENT)):
        config, origin = Path(path), CONFIG_ENVIRONMENT
    if config is not None:
        return ProfileStore(home.expanded_path(config), origin=origin)
    try:
        return ProfileStore(home.directory("config") / "config.yaml")
    except UsageError:  # even without a home directory, the environment may contain all settings
        return ProfileStore(Path("~/.config/svcctl/config.yaml"))


def _parsed(text: str, path: Path) -> ProfilesDocument:
    from svcctl.io.yaml_text import YamlError, documents

    place = f"profiles file {path}"
    try:
        trees = documents(text)
    except YamlError as error:
        raise ProfileError(f"{_at(place, error.line)}: {error.problem}", hint=error.hint) from None
    if not trees:
        return EMPTY
    tree = trees[0]
    if len(trees) > 1:
        raise ProfileError(f"{_at(place, trees[1].line)}: a second document begins", hint="put all profiles in one")
    content = tree.value
    if not isinstance(content, dict) or not isinstance(content.get("profiles") or {}, dict):
        raise ProfileError(f"{place} must have 'profiles:', a mapping of names to fields")
    unusable: dict[str, ProfileError] = {}
    for key in tree.repeated:
        repeated = ProfileError(f"{_at(place, key.line)}: {key.problem}", hint="keep one of them")
        if key.path[0] != "profiles" or len(key.path) < 2:
            raise repeated
        unusable.setdefault(key.path[1], repeated)
    ambiguous = tuple(unusable)
    profiles = {
        name: {} if fields is None else fields for name, fields in (content.pop("profiles", None) or {}).items()
    }
    default = content.pop("default", None)
    if not isinstance(default, str | None):
        raise ProfileError(f"{_at(place, tree.lines['default'])}: 'default' must be the name of a profile")
    for name, fields in profiles.items():
        if not name:
            raise ProfileError(f"{_at(place, tree.lines['profiles.'])}: a profile has no name")
        if not isinstance(fields, dict):
            line = tree.lines[f"profiles.{name}"]
            raise ProfileError(f"{_at(f'profile {name} in {path}', line)} must be a mapping of fields")
        try:
            _check_fields(fields, partial(_field_place, tree, name, path))
        except ProfileError as error:
            unusable.setdefault(name, error)
    return ProfilesDocument(profiles, default, content, unusable, ambiguous)


def _field_place(tree: Tree, name: str, path: Path, key: str) -> str:
    return _at(f"profile {name} in {path}", tree.lines[f"profiles.{name}.{key}"])


def _at(place: str, line: int | None) -> str:
    return place if line is None else f"{place}, line {line}"


def _check_fields(fields: Fields, place: Callable[[str], str]) -> None:
    """Check the fields of a profile. Raises ProfileError for an unknown field or an invalid value.

    `place` is a function that describes the location of a key in words, for the message of an error.
    """
    names = known_fields()
    for key, value in fields.items():
        if key in MAPPINGS:
            if not isinstance(value, dict):
                raise ProfileError(f"{place(key)}: '{key}' must be a mapping of names")
            for inner, text in value.items():
                if inner not in MAPPINGS[key]:
                    raise unknown_field(f"{key}.{inner}", place(f"{key}.{inner}"))
                _check_text(f"{key}.{inner}", text, place)
        elif key not in names:
            raise unknown_field(key, place(key))
        else:
            _check_text(key, value, place)
    for setting in PROFILE_SETTINGS.values():
        keys = [key for key in setting.fields if key in fields]
        if len(keys) > 1:
            raise ProfileError(f"{place(keys[1])} sets both {keys[0]} and {keys[1]}", hint="keep one of them")
        if setting.name in fields:
            setting.value_of(fields[setting.name], place(setting.name))


def _check_text(key: str, value: object, place: Callable[[str], str]) -> None:
    if value is None:
        hint = "remove the field, or put its value in quotes if that begins with #, & or ~"
        raise ProfileError(f"{place(key)}: '{key}' has no value", hint=hint)
    if not isinstance(value, str):
        raise ProfileError(f"{place(key)}: '{key}' must be a single value")


def _change(fields: dict[str, Any], key: str, text: str) -> None:
    if key not in known_fields():
        raise unknown_field(key, "the profile")
    group, _, inner = key.partition(".")
    target = fields
    if inner:
        target = fields[group] = dict(fields.get(group) or {})
    if text:
        for setting in PROFILE_SETTINGS.values():
            if setting.secret and key in setting.fields:
                for field_ in setting.fields:
                    fields.pop(field_, None)
        value = setting_of(key).new_value_of(text)
        target[inner or key] = value if isinstance(value, str) else text
    else:
        target.pop(inner or key, None)
        if inner and not target:
            del fields[group]
