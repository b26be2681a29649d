"""The options that all `apply` commands have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from svcctl.cli.completion import words
from svcctl.cli.completion.words import FILES, Completes
from svcctl.cli.options import YesOpt


@dataclass(frozen=True, kw_only=True)
class ApplyOptions:
    """The options that all `apply` commands have."""

    file: Annotated[
        list[Path],
        typer.Option("--file", "-F", metavar="FILE", help="YAML file with the desired state; repeat for more files."),
        Completes(FILES),
    ]
    var: Annotated[
        list[str] | None,
        typer.Option("--var", metavar="K=V", help="Replace {{K}} in the files by V; in a query as a quoted literal."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the differences and change nothing.")] = False
    check: Annotated[bool, typer.Option("--check", help="Like --dry-run, but exit 10 if there are differences.")] = (
        False
    )
    yes: YesOpt = False
    format: Annotated[
        str | None,
        typer.Option("--format", "-f", metavar="FORMAT", help="Print the differences for programs, as ndjson."),
        Completes(words=words.list_formats),
    ] = None
