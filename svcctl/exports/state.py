"""The state of an incremental export: the target of the export, and the start of the next run's range.

This start is changed only after the files of a run are published. So the run after a failed run fetches the missing
windows.

A state has a name, and is stored in a small file in the folder of states. Next to this file, there is a lock file. A
run holds the lock, so a second run of the same state ends at once (exit code 9).

Next to the target, there is a record of the exported windows. A run is refused if the record does not match the state.
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
    """The state of an incremental export. The range of the next run starts at the epoch second `until`.

    `target` is an absolute path or a URL. `failed` says when and why the latest run failed. If the latest run
    succeeded, `failed` is empty.
    """

    target: str
    until: int
    failed: str = ""


class DamagedState(UsageError):
    """Raised if the file of a state has no valid content."""


def placed(target: str) -> str:
    """Return a target as a normalized absolute path. A URL is returned unchanged.

    Two spellings of the same path have the same result. Raises UsageError if the current directory was removed.
    """
    if "://" in target:
        return target
    try:
        here = "" if Path(target).is_absolute() else str(Path.cwd())
    except FileNotFoundError:
        raise UsageError("the current directory was removed", hint="change to another directory") from None
    return os.path.normpath(Path(re.sub(r"[%{}]", r"\g<0>\g<0>", here), target))


def default_states(environment: Mapping[str, str]) -> States:
    """Return the states in the folder whose path is in the environment variable SVCCTL_STATE.

    Without this variable, the folder is in the state directory of the platform.
    """
    if named := environment.get(STATE_ENVIRONMENT):
        return States(home.expanded_path(named).absolute())
    return States(home.directory("state", STATE_ENVIRONMENT) / "exports")


@dataclass(frozen=True, slots=True)
class States:
    """The states in a folder. The folder is created when the first state is saved or locked."""

    folder: Path

    def path(self, name: str) -> Path:
        """Return the path of a state's file. Raises UsageError if the name is not allowed for a state."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"'{name}' cannot be the name of a state", hint="a name is 1 to 100 letters, digits, '.', '_' or '-'"
            )
        return self.folder / f"{name}.json"

    def names(self) -> list[str]:
        """Return the names of all states."""
        try:
            return sorted(path.stem for path in self.folder.glob("*.json"))
        except OSError as error:
            raise UsageError(f"states {self.folder} cannot be read: {error.strerror}") from None

    def load(self, name: str) -> State | None:
        """Return the state with the given name. Return None before the first run of the state.

        Raises DamagedState if the file of the state is damaged. Raises UsageError if the file cannot be read.
        """
        path = self.path(name)
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document.pop("version") > VERSION:
                raise UsageError(f"state {path} was written by a newer svcctl", hint="install the newer svcctl")
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
        """Return the name and the state of the export that writes to a target.

        Return None if no export with a state writes to the target.
        """
        place = placed(target)
        for name in self.names():
            with suppress(UsageError):  # a damaged state of another export does not matter here
                if (state := self.load(name)) is not None and state.target == place:
                    return name, state
        return None

    def need(self, name: str) -> State:
        """Return the state with the given name. Raises NotFound if there is no such state."""
        if (state := self.load(name)) is None:
            names = choices(self.names())
            raise NotFound(f"no export state '{name}'", hint=f"states are: {names}" if names else None)
        return state

    def save(self, name: str, state: State) -> None:
        """Save a state under a name, and replace its old version. After this call, the state is safely on the disk."""
        path = self.path(name)
        document = {"version": VERSION, **asdict(state)}
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.write(path, (json.dumps(document) + "\n").encode())
        except OSError as error:
            raise UsageError(f"state {path} cannot be written: {error.strerror}") from None

    def remove(self, name: str) -> None:
        """Remove the state with the given name."""
        path = self.path(name)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"state {path} cannot be removed: {error.strerror}") from None

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold the lock of a state during a block. Raises Locked if another run of this state holds the lock."""
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
