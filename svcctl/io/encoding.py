"""The encoding of text from users and their systems: arguments, standard streams, files.

Text is read as UTF-8 if possible, and otherwise in the encoding of the locale, such as ISO-8859-1. For the operating
system, file names are bytes. In Python's UTF-8 mode, these bytes are preserved exactly. So svcctl always runs in this
mode.
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

    If no locale is set, as in containers, return UTF-8, because terminals use UTF-8. The variable PYTHONIOENCODING is
    ignored. Users set this variable for other programs, and the encoding in the variable would damage the output of
    svcctl.
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
    """Decode an argument of the command line. Bytes that are not text stay lone surrogates, as Python decodes them."""
    if text.isascii():
        return text
    try:
        return decoded_text(os.fsencode(text))
    except UnicodeDecodeError:
        return text
