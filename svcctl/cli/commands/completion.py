"""`svcctl completion`: the scripts that complete a command line, and the manual pages that are installed with them.

Two commands are hidden: `svcctl complete`, which the scripts call, and `svcctl manual-pages`, which packagers call.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from svcctl.cli.commands import NOUNS, page_of
from svcctl.cli.completion.shells import SHELLS, manual_directory, script
from svcctl.cli.completion.words import Completes
from svcctl.cli.context import Context
from svcctl.errors import Advice, CommandLine, UsageError
from svcctl.io import files

ShellArg = Annotated[str, typer.Argument(metavar="SHELL", help=", ".join(SHELLS)), Completes(words=SHELLS)]
InstallOpt = Annotated[
    bool, typer.Option("--install", help="Install the script where the shell finds it; also the manual pages.")
]
KindArg = Annotated[str, typer.Argument(metavar="KIND")]
OfArg = Annotated[str, typer.Argument(metavar="[OF]")]
DirectoryArg = Annotated[Path, typer.Argument(metavar="DIRECTORY")]


def register(app: typer.Typer) -> None:
    app.command("completion", help=page_of("completion", completion))(completion)
    app.command("complete", hidden=True)(complete)
    app.command("manual-pages", hidden=True)(manual_pages)


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
    text = script(row, _tree(ctx))
    if not install:
        svc.output.text(text.rstrip("\n"))
        return
    path, manual = row.place(svc.environment), manual_directory(svc.environment)
    _write(path, text)
    manual_pages(ctx, manual)
    svc.diagnostics.note(f"installed {path}")
    svc.diagnostics.note(row.afterwards.format(path=path, directory=path.parent))
    reading = CommandLine(f"man -M '{manual.parent}' svcctl")
    svc.diagnostics.note(
        Advice(f"installed the manual pages in {manual}; if 'man svcctl' does not find them: ", reading)
    )


def manual_pages(ctx: typer.Context, directory: DirectoryArg) -> None:
    """Write the manual pages into a directory, such as /usr/share/man/man1."""
    from svcctl.cli.help.manual import pages

    for name, text in pages(_tree(ctx)).items():
        _write(directory / name, text)


def _tree(ctx: typer.Context) -> Any:
    """The root command with all nouns."""
    root: Any = ctx.find_root().command
    root.load(*NOUNS)
    return root


def _write(path: Path, text: str) -> None:
    """Write a file, and make its directory if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, text.encode())
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def complete(ctx: typer.Context, kind: KindArg, of: OfArg = "") -> None:
    """Print the names of a kind, such as the columns of a table, and what they are, one per line."""
    from svcctl.cli.completion.names import names

    svc: Context = ctx.obj
    for name, meaning in names(svc, kind, of):
        svc.output.text(f"{name}\t{meaning}")
