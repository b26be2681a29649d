"""The packing of delivered files: plain, gzip, or a zip archive. An archive may be encrypted with a password."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Protocol

from svcctl.storage import Sink


class Counted(io.RawIOBase):
    """The output stream of a packer. It counts and hashes all bytes.

    The bytes are written to the sink, which is a file in the storage. Without a sink, the bytes are dropped.
    """

    def __init__(self, sink: Sink | None) -> None:
        self._sink = sink
        self.size = 0
        self.sha256 = hashlib.sha256()

    def drop(self) -> None:
        """Stop writing bytes to the sink.

        A zip archive that is abandoned writes its last bytes when Python deletes the archive object. These bytes must
        not reach the sink.
        """
        self._sink = None

    def write(self, data: Any, /) -> int:
        view = memoryview(data)
        if self._sink is not None:
            self._sink.write(view)
        self.sha256.update(view)
        self.size += view.nbytes
        return view.nbytes


class Packer(Protocol):
    """Writes a packed file. Some bytes may be held back until `finish`."""

    def write(self, rows: memoryview | bytes) -> object: ...

    def finish(self) -> None:
        """Write the bytes that were held back, and the end of the file."""


class Plain(Packer):
    """Writes the rows without packing."""

    def __init__(self, out: Counted, name: str, password: str) -> None:
        self._out = out

    def write(self, rows: memoryview | bytes) -> None:
        self._out.write(rows)

    def finish(self) -> None:
        return


class Gzip(Packer):
    """Writes the rows compressed by gzip."""

    def __init__(self, out: Counted, name: str, password: str) -> None:
        self._out = out
        self._compressor = zlib.compressobj(6, wbits=31)

    def write(self, rows: memoryview | bytes) -> None:
        self._out.write(self._compressor.compress(rows))

    def finish(self) -> None:
        self._out.write(self._compressor.flush())


class Zip(Packer):
    """Writes a zip archive with one file, `name`. If there is a password, the file is encrypted with AES."""

    def __init__(self, out: Counted, name: str, password: str) -> None:
        self._archive: Any
        if password:
            import pyzipper

            self._archive = pyzipper.AESZipFile(out, "w", compression=pyzipper.ZIP_DEFLATED, encryption=pyzipper.WZ_AES)
            self._archive.setpassword(password.encode())
        else:
            self._archive = zipfile.ZipFile(out, "w", compression=zipfile.ZIP_DEFLATED)
        self._file: IO[bytes] = self._archive.open(name, "w", force_zip64=True)

    def write(self, rows: memoryview | bytes) -> None:
        self._file.write(rows)

    def finish(self) -> None:
        self._file.close()
        self._archive.close()


@dataclass(frozen=True, slots=True)
class Packing:
    """A row of the table PACKINGS: the suffix of file names, and the function that makes a packer.

    The function takes the output stream, the name of the file, and the password.
    """

    suffix: str
    packer: Callable[[Counted, str, str], Packer]


PACKINGS: Mapping[str, Packing] = {
    "plain": Packing("", Plain),
    "gzip": Packing(".gz", Gzip),
    "zip": Packing(".zip", Zip),
}
