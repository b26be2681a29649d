"""The encoding of text from users and their systems: arguments, standard streams, files.

Text is read as UTF-8 if possible, and otherwise in the encoding of the locale, such as ISO-8859-1. Python must read
file names as UTF-8, so that the bytes of every file name are preserved exactly.
"""

from __future__ import annotations

import codecs
import os
import sys

UTF_8 = "utf-8"


def use_utf8() -> None:
    """Restart this program in Python's UTF-8 mode. If Python already reads file names as UTF-8, do nothing."""
    if not sys.flags.utf8_mode and sys.getfilesystemencoding() != UTF_8 and sys.executable:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def of_locale() -> str:
    """Return the encoding of the locale.

    If no locale is set, as in containers, return UTF-8. The variable PYTHONIOENCODING is ignored, because users set
    this variable for other programs.
    """
    if not sys.flags.utf8_mode:
        return UTF_8 if sys.getfilesystemencoding() == "ascii" else sys.getfilesystemencoding()
    import locale

    name = codecs.lookup(locale.getencoding()).name
    return UTF_8 if name == "ascii" else name


def decoded_text(data: bytes) -> str:
    """Decode bytes as UTF-8, or else in the encoding of the locale.

    Raises UnicodeDecodeError if both decodings fail.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode(of_locale())


def argument(text: str) -> str:
    """Decode an argument of the command line. An argument that cannot be decoded is returned unchanged."""
    if text.isascii():
        return text
    try:
        return decoded_text(os.fsencode(text))
    except UnicodeDecodeError:
        return text
