"""Local files under a directory. While it is written, a file is `<name>.part`, locked by its writer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from svcctl.compression import Damaged, check
from svcctl.errors import IncompleteResult, UsageError
from svcctl.files import PART_SUFFIX, Part
from svcctl.storage import Sink, Storage, absent, exists

PIECE_BYTES = 1 << 20


class Local(Storage):
    """Files under `directory`; with the empty path, names are paths as a shell takes them, absolute ones too."""

    def __init__(self, directory: Path = Path()) -> None:
        self._directory = directory

    def create(self, name: str, *, overwrite: bool) -> Sink:
        path = self._directory / name
        with _explained(path, "write"):
            if path.exists() and not path.is_file():
                raise UsageError(f"{path} is not a regular file")
            if path.exists() and not overwrite:
                raise exists(str(path))
            path.parent.mkdir(parents=True, exist_ok=True)
            return _File(Part(path), overwrite=overwrite)

    def size(self, name: str) -> int | None:
        path = self._directory / name
        with _explained(path, "read"):
            return path.stat().st_size if path.is_file() else None

    def read(self, name: str) -> Iterator[bytes]:
        path = self._directory / name
        with _explained(path, "read"), path.open("rb", buffering=0) as stream:
            while piece := stream.read(PIECE_BYTES):
                yield piece

    def names(self, folder: str = "") -> Iterator[str]:
        top = self._directory / folder
        for directory, _, files in os.walk(top):
            for file in files:
                if not file.endswith(PART_SUFFIX):
                    yield (folder / Path(directory, file).relative_to(top)).as_posix()

    def remove(self, name: str) -> None:
        path = self._directory / name
        with _explained(path, "remove"):
            path.unlink(missing_ok=True)

    def address(self, name: str) -> str:
        return str(self._directory / name)


class _File(Sink):
    """A file being written."""

    def __init__(self, part: Part, *, overwrite: bool) -> None:
        self._part = part
        self._overwrite = overwrite
        self._open = ExitStack()
        self._open.enter_context(part)

    def write(self, data: bytes | memoryview, /) -> None:
        with self._whole():
            self._part.write(data)

    def complete(self) -> None:
        with self._whole():
            check(self._part.path.suffix, self._part.read())
            self._part.publish(overwrite=self._overwrite)
        self._open.close()

    def abandon(self) -> None:
        self._open.close()

    @contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise exists(str(self._part.path)) from None
        except Damaged as error:
            raise IncompleteResult(f"cannot write {self._part.path}: what was written {error}") from None
        except OSError as error:
            raise IncompleteResult(f"cannot write {self._part.path}: {error.strerror}") from None


@contextmanager
def _explained(path: Path, verb: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise absent(str(path)) from None
    except OSError as error:
        raise UsageError(f"cannot {verb} {path}: {error.strerror}") from None
