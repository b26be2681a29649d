"""The commands, with one module per noun. Each module has a function `register` that adds its commands to the root app.

The modules do not import each other.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc

from svcctl.cli.app import App

NOUNS = {
    "query": "Run a query over a time range.",
    "tables": "List the tables, or the columns of one.",
    "export": "Export a long range into files, in windows; resumes.",
    "job": "Manage jobs: queries that run with --dest.",
    "range": "Show what --from and --to resolve to.",
    "domain": "Manage customer domains (with reseller credentials).",
    "role": "Manage the custom roles of a domain.",
    "profile": "Manage connection profiles: server address and credentials.",
    "service": "Run a local service (demo data or your own files).",
    "api": "Send any signed request and print the response.",
    "completion": "Print or install the completion script of a shell.",
    "help": "Explain a topic: dates, formats, profiles and more.",
}
"""The purpose of each noun, in the order of the root's help page.

The help page of the root is made without importing the modules of the nouns.
"""


def page_of(noun: str, command: Callable[..., object]) -> str:
    """Return the help text of a noun that is a single command: the noun's purpose, then the command's docstring."""
    return f"{NOUNS[noun]}\n\n{cleandoc(command.__doc__ or '')}"


def verbs_of(noun: str, *paragraphs: str) -> App:
    """Return the app of a noun, to which the noun's module adds verbs.

    The help page of the app has the noun's purpose, and then `paragraphs`.
    """
    return App(help="\n\n".join((NOUNS[noun], *paragraphs)), no_args_is_help=True)
