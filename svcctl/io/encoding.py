"""The encoding of text from users and their systems: arguments, standard streams, files.

Text is read as UTF-8 if possible, and otherwise in the encoding of the locale, such as ISO-8859-1. File names are bytes
for the system. Python's UTF-8 mode preserves them exactly, so svcctl always runs in this mode.
"""

from __future__ import annotations

import codecs
import os
import sys

UTF_8 = "utf-8"


def use_utf8() -> None:
    """Restart this program in Python's UTF-8 mode, unless file names are in UTF-8 already."""
    if not sys.flags.utf8_mode and sys.getfilesystemencoding() != UTF_8 and sys.executable:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def of_locale() -> str:
    """The encoding of the locale; UTF-8 if no locale is set, as in containers, because terminals use it.

    PYTHONIOENCODING is ignored: users set it for other programs, and it would damage the output.
    """
    if not sys.flags.utf8_mode:
        return UTF_8 if sys.getfilesystemencoding() == "ascii" else sys.getfilesystemencoding()
    import locale

    name = codecs.lookup(locale.getencoding()).name
    return UTF_8 if name == "ascii" else name


def decoded_text(data: bytes) -> str:
    """The text of bytes in UTF-8 or in the encoding of the locale; UnicodeDecodeError if they are in neither."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode(of_locale())


def argument(text: str) -> str:
    """An argument of the command line as text. Bytes that are not text stay lone surrogates, as Python decodes them."""
    if text.isascii():
        return text
    try:
        return decoded_text(os.fsencode(text))
    except UnicodeDecodeError:
        return text
