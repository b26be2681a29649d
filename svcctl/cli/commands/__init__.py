"""The commands of svcctl, with one module for each noun, such as `job`.

The function `register` of a module adds the commands of the module to the root app. The modules do not import each
other.
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
"""The description of each noun, in the order of the main help page.

The main help page is made without importing the modules of the nouns.
"""


def page_of(noun: str, command: Callable[..., object]) -> str:
    """Return the help text of a noun that is a single command, such as `api`.

    The text is the description of the noun in NOUNS, and then the docstring of the command.
    """
    return f"{NOUNS[noun]}\n\n{cleandoc(command.__doc__ or '')}"


def verbs_of(noun: str, *paragraphs: str) -> App:
    """Return an app for the commands of a noun, such as `job list`. The noun's module adds the commands.

    The help page of the app has the description of the noun, and then `paragraphs`.
    """
    return App(help="\n\n".join((NOUNS[noun], *paragraphs)), no_args_is_help=True)
