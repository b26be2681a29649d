"""`svcctl completion`: the scripts that complete a command line, and the manual pages that are installed with them.

Two commands are hidden: `svcctl complete`, which the scripts call, and `svcctl manual-pages`, which packagers call.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from svcctl.cli.commands import NOUNS, page_of
from svcctl.cli.completion import installed_files
from svcctl.cli.completion.shells import SHELLS, manual_directory, script
from svcctl.cli.completion.words import Completes
from svcctl.cli.context import Context
from svcctl.errors import Advice, CommandLine, UsageError
from svcctl.words import counted

ShellArg = Annotated[str | None, typer.Argument(metavar="[SHELL]", help=", ".join(SHELLS)), Completes(words=SHELLS)]
InstallOpt = Annotated[
    bool, typer.Option("--install", help="Install the script where the shell finds it; also the manual pages.")
]
UninstallOpt = Annotated[
    bool, typer.Option("--uninstall", help="Remove what --install wrote, for all shells; changed files are kept.")
]
KindArg = Annotated[str, typer.Argument(metavar="KIND")]
OfArg = Annotated[str, typer.Argument(metavar="[OF]")]
DirectoryArg = Annotated[Path, typer.Argument(metavar="DIRECTORY")]


def register(app: typer.Typer) -> None:
    app.command("completion", help=page_of("completion", completion))(completion)
    app.command("complete", hidden=True)(complete)
    app.command("manual-pages", hidden=True)(manual_pages)


def completion(
    ctx: typer.Context, shell: ShellArg = None, install: InstallOpt = False, uninstall: UninstallOpt = False
) -> None:
    """Examples:

    \b
    svcctl completion bash --install
    source <(svcctl completion zsh)
    svcctl completion fish | source
    svcctl completion --uninstall
    """
    svc: Context = ctx.obj
    if uninstall:
        if shell is not None or install:
            raise UsageError("--uninstall is for all shells", hint=f"leave out {shell or '--install'}")
        _uninstall(svc, _pages(ctx))
        return
    if shell is None:
        raise UsageError("missing SHELL", hint=f"shells are: {', '.join(SHELLS)}")
    if shell not in SHELLS:
        raise UsageError(f"unknown shell '{shell}'", hint=f"shells are: {', '.join(SHELLS)}")
    row = SHELLS[shell]
    text = script(row, _tree(ctx))
    if not install:
        svc.output.text(text.rstrip("\n"))
        return
    path, manual = row.place(svc.environment), manual_directory(svc.environment)
    installed_files.write(path, text, comment="#")
    for name, page in _pages(ctx).items():
        installed_files.write(manual / name, page, comment='.\\"')
    svc.diagnostics.note(f"installed {path}")
    svc.diagnostics.note(row.afterwards.format(path=path, directory=path.parent))
    reading = CommandLine(f"man -M '{manual.parent}' svcctl")
    svc.diagnostics.note(
        Advice(f"installed the manual pages in {manual}; if 'man svcctl' does not find them: ", reading)
    )


def manual_pages(ctx: typer.Context, directory: DirectoryArg) -> None:
    """Write the manual pages into a directory, such as /usr/share/man/man1."""
    for name, text in _pages(ctx).items():
        installed_files.write(directory / name, text)


def _uninstall(svc: Context, pages: Mapping[str, str]) -> None:
    """Remove the installed files, except files that somebody has changed.

    A warning names each file that is kept. If the user should remove a line in a start file of a shell, such as
    ~/.bashrc, a note names the line.
    """
    removed = installed_files.remove(svc.environment, pages)
    for path in removed.scripts:
        svc.diagnostics.note(f"removed {path}")
    for start, number in installed_files.stale_lines(svc.environment):
        svc.diagnostics.note(f"remove line {number} of {start}, too: it loads a script that no longer exists")
    if removed.pages:
        svc.diagnostics.note(f"removed {counted(removed.pages, 'manual page')} in {manual_directory(svc.environment)}")
    for path in removed.changed_files:
        svc.diagnostics.warning(f"kept {path}: its content is not that of 'svcctl completion --install'")
    if not (removed.scripts or removed.pages or removed.changed_files):
        svc.diagnostics.note("nothing is installed")


def _pages(ctx: typer.Context) -> dict[str, str]:
    from svcctl.cli.help.manual import pages

    return pages(_tree(ctx))


def _tree(ctx: typer.Context) -> Any:
    """Return the root command after loading the commands of all nouns."""
    root: Any = ctx.find_root().command
    root.load(*NOUNS)
    return root


def complete(ctx: typer.Context, kind: KindArg, of: OfArg = "") -> None:
    """Print the names of a kind, such as the columns of a table, one per line with a short description."""
    from svcctl.cli.completion.names import names

    svc: Context = ctx.obj
    for name, meaning in names(svc, kind, of):
        svc.output.text(f"{name}\t{meaning}")
