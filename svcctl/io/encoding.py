"""The encoding of text that comes from users and their systems: arguments, standard streams, files.

UTF-8 comes first everywhere. What is not UTF-8 is read in the encoding of the locale, such as ISO-8859-1. Names of
files are bytes to the system: Python's UTF-8 mode passes each of them on unchanged, so svcctl always runs in it.
"""

from __future__ import annotations

import codecs
import os
import sys

UTF_8 = "utf-8"


def use_utf8() -> None:
    """Start this program again in Python's UTF-8 mode, unless names of files are UTF-8 already."""
    if not sys.flags.utf8_mode and sys.getfilesystemencoding() != UTF_8 and sys.executable:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def of_locale() -> str:
    """The encoding of the locale. It is UTF-8 where no locale is set, as in containers, since terminals speak that.

    PYTHONIOENCODING does not count: it is meant for other programs of a user, and would damage what is printed.
    """
    if not sys.flags.utf8_mode:
        return UTF_8 if sys.getfilesystemencoding() == "ascii" else sys.getfilesystemencoding()
    import locale

    name = codecs.lookup(locale.getencoding()).name
    return UTF_8 if name == "ascii" else name


def decoded(data: bytes) -> str:
    """The text of some bytes; UnicodeDecodeError when they are neither UTF-8 nor text of the locale."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if of_locale() == UTF_8:
            raise
        return data.decode(of_locale())


def argument(text: str) -> str:
    """An argument of the command line as text; bytes that are not text stay as the lone surrogates of Python."""
    if text.isascii():
        return text
    try:
        return decoded(os.fsencode(text))
    except UnicodeDecodeError:
        return text
