"""The state of an incremental export: a name for the target, and the end of the last run, at which the next run starts.

A state is a small file in the folder of states, with a lock file next to it. A run holds the lock, so a second run of
the same state ends at once (exit 9). The end in the state moves only after the files of a run are published. So after a
failed run, the next run starts at the same moment. A run is refused if the record of the target does not match the
state.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from svcctl.errors import NotFound, UsageError
from svcctl.io import files, home
from svcctl.words import choices

VERSION = 1

STATE_ENVIRONMENT = "SVCCTL_STATE"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class State:
    """The state of an export. The next run of the export starts at the epoch second `until`.

    `target` is a path that is valid in every current directory. `failed` says when and why the last run failed; it is
    empty if that run succeeded.
    """

    target: str
    until: int
    failed: str = ""


class DamagedState(UsageError):
    """A state whose file does not contain a valid state."""


def placed(target: str) -> str:
    """Return a target in the spelling that is valid in every current directory.

    Equal targets have the same spelling.
    """
    if "://" in target:
        return target
    try:
        here = "" if Path(target).is_absolute() else str(Path.cwd())
    except FileNotFoundError:
        raise UsageError("the current directory was removed", hint="change to another one") from None
    return os.path.normpath(Path(re.sub(r"[%{}]", r"\g<0>\g<0>", here), target))


def default_states(environment: Mapping[str, str]) -> States:
    """Return the states in the folder that SVCCTL_STATE names, or else in the state directory of the platform."""
    if named := environment.get(STATE_ENVIRONMENT):
        return States(home.expanded_path(named).absolute())
    return States(home.directory("state", STATE_ENVIRONMENT) / "exports")


@dataclass(frozen=True, slots=True)
class States:
    """The states in a folder. The first save creates the folder."""

    folder: Path

    def path(self, name: str) -> Path:
        """Return the path of the file of a state. Raises UsageError for a name that a state cannot have."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"'{name}' cannot name a state", hint="a name is 1 to 100 letters, digits, '.', '_' or '-'"
            )
        return self.folder / f"{name}.json"

    def names(self) -> list[str]:
        """Return the names of all states."""
        try:
            return sorted(path.stem for path in self.folder.glob("*.json"))
        except OSError as error:
            raise UsageError(f"states {self.folder} cannot be read: {error.strerror}") from None

    def load(self, name: str) -> State | None:
        """Return the state with a name; None before the first run of the state.

        Raises UsageError if its file is damaged.
        """
        path = self.path(name)
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document.pop("version") > VERSION:
                raise UsageError(f"state {path} was written by a newer svcctl", hint="install that one")
            return State(**document)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise DamagedState(
                f"state {path} is damaged",
                hint=f"remove it with 'svcctl export rm {name}', and give the next run --from: 'svcctl export status "
                "PATH', with PATH as given to -o, shows the end of the export",
            ) from None
        except OSError as error:
            raise UsageError(f"state {path} cannot be read: {error.strerror}") from None

    def writing(self, target: str) -> tuple[str, State] | None:
        """Return the state that writes to a target, with its name; None if no state writes to the target."""
        place = placed(target)
        for name in self.names():
            with suppress(UsageError):  # a damaged state of another export does not matter here
                if (state := self.load(name)) is not None and state.target == place:
                    return name, state
        return None

    def need(self, name: str) -> State:
        """Return the state with a name. Raises NotFound if there is no such state."""
        if (state := self.load(name)) is None:
            names = choices(self.names())
            raise NotFound(f"no export state '{name}'", hint=f"states are: {names}" if names else None)
        return state

    def save(self, name: str, state: State) -> None:
        """Replace the state with a name. When this returns, the new state is synced to the disk."""
        path = self.path(name)
        document = {"version": VERSION, **asdict(state)}
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.write(path, (json.dumps(document) + "\n").encode())
        except OSError as error:
            raise UsageError(f"state {path} cannot be written: {error.strerror}") from None

    def remove(self, name: str) -> None:
        """Remove a state."""
        path = self.path(name)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"state {path} cannot be removed: {error.strerror}") from None

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold the lock of a state during a block. Raises Locked if another run holds the lock."""
        path = self.path(name).with_suffix(".lock")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = files.lock(path, f"another run of the export '{name}' has not ended yet")
        except OSError as error:
            raise UsageError(f"lock {path} cannot be taken: {error.strerror}") from None
        try:
            yield
        finally:
            os.close(handle)
