"""The files that `svcctl completion --install` writes and `--uninstall` removes.

Each file ends in a comment with a checksum of the text before the comment. So `--uninstall` recognises files of any
version, and keeps a file that somebody has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from svcctl.cli.completion.shells import SHELLS, config_directory, manual_directory
from svcctl.errors import UsageError, reason
from svcctl.io import files, home

_SEAL = "installed by 'svcctl completion --install'; sha256 "
_PAGES = "svcctl*.1"
"""The pattern that matches the file names of manual pages."""


@dataclass(slots=True)
class Removed:
    """The result of an uninstallation: the removed scripts, and the number of removed manual pages.

    `changed_files` are files that were not removed, because somebody has changed them.
    """

    scripts: list[Path] = field(default_factory=list)
    pages: int = 0
    changed_files: list[Path] = field(default_factory=list)


def write(path: Path, text: str, *, comment: str | None = None) -> None:
    """Write a file, and create its directory if the directory is missing.

    If `comment` is given, a last line is added. It begins with `comment` and has the checksum.
    """
    seal = "" if comment is None else f"{comment} {_SEAL}{_checksum(text.encode())}\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, (text + seal).encode())
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def remove(environment: Mapping[str, str], page_names: Iterable[str]) -> Removed:
    """Remove the scripts of all shells and the manual pages.

    `page_names` are the names of this version's manual pages. Changed manual pages with other names are not reported.
    Raises UsageError for a file that cannot be read or removed.
    """
    removed, manual, names = Removed(), manual_directory(environment), set(page_names)
    for row in SHELLS.values():
        path = row.place(environment)
        if _remove(path):
            removed.scripts.append(path)
        elif path.exists():
            removed.changed_files.append(path)
    for path in sorted(manual.glob(_PAGES)):
        if _remove(path):
            removed.pages += 1
        elif path.name in names:
            removed.changed_files.append(path)
    return removed


def stale_lines(environment: Mapping[str, str]) -> Iterator[tuple[Path, int]]:
    """Yield the places where .bashrc and similar files load a missing completion script.

    A place is a pair of a file and a line number.
    """
    user = home.expanded_path("~")
    zsh = Path(environment.get("ZDOTDIR") or user)
    gone = [path for row in SHELLS.values() if not (path := row.place(environment)).exists()]
    names = [str(path.relative_to(user) if path.is_relative_to(user) else path) for path in gone]
    starts = [user / ".bashrc", user / ".bash_profile", user / ".profile", zsh / ".zshrc"]
    for start in [*starts, config_directory(environment) / "fish" / "config.fish"]:
        try:
            lines = start.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for number, line in enumerate(lines, 1):
            if not line.lstrip().startswith("#") and any(name in line for name in names):
                yield start, number


def _remove(path: Path) -> bool:
    """Remove a file if it is unchanged, and return whether it was removed.

    A symbolic link is not removed, because the user has made the link.
    """
    try:
        if path.is_symlink() or not path.is_file() or not _is_unchanged(path.read_bytes()):
            return False
        path.unlink()
    except OSError as error:
        raise UsageError(f"cannot remove {path}: {reason(error)}") from None
    return True


def _is_unchanged(data: bytes) -> bool:
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    checksum = data[start:].partition(_SEAL.encode())[2]
    return checksum == f"{_checksum(data[:start])}\n".encode()


def _checksum(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
