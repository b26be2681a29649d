"""`svcctl completion`: the scripts that complete a command line; and the hidden `svcctl complete`, which they call."""

from __future__ import annotations

from typing import Annotated

import typer

from svcctl.cli.commands import page_of
from svcctl.cli.completion.shells import SHELLS, script
from svcctl.cli.completion.words import Completes
from svcctl.cli.context import Context
from svcctl.errors import UsageError
from svcctl.io import files

ShellArg = Annotated[str, typer.Argument(metavar="SHELL", help=", ".join(SHELLS)), Completes(words=SHELLS)]
InstallOpt = Annotated[bool, typer.Option("--install", help="Install the script where the shell finds it.")]
KindArg = Annotated[str, typer.Argument(metavar="KIND")]
OfArg = Annotated[str, typer.Argument(metavar="[OF]")]


def register(app: typer.Typer) -> None:
    app.command("completion", help=page_of("completion", completion))(completion)
    app.command("complete", hidden=True)(complete)


def completion(ctx: typer.Context, shell: ShellArg, install: InstallOpt = False) -> None:
    """Examples:

    \b
    svcctl completion bash --install
    source <(svcctl completion zsh)
    svcctl completion fish | source
    """
    svc: Context = ctx.obj
    if shell not in SHELLS:
        raise UsageError(f"unknown shell '{shell}'", hint=f"shells are: {', '.join(SHELLS)}")
    row = SHELLS[shell]
    text = script(row, ctx.find_root().command)
    if not install:
        svc.output.text(text.rstrip("\n"))
        return
    path = row.place(svc.environment)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, text.encode())
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    svc.diagnostics.note(f"installed {path}")
    svc.diagnostics.note(row.afterwards.format(path=path, directory=path.parent))


def complete(ctx: typer.Context, kind: KindArg, of: OfArg = "") -> None:
    """Print the names of a kind, such as the columns of a table, and what they are, one per line."""
    from svcctl.cli.completion.names import names

    svc: Context = ctx.obj
    for name, meaning in names(svc, kind, of):
        svc.output.text(f"{name}\t{meaning}")
