"""`svcctl completion`: the scripts that complete the words of a command line, printed or put where a shell looks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from svcctl.context import Context
from svcctl.errors import UsageError

SHELLS = ("bash", "zsh", "fish")

ShellArg = Annotated[str, typer.Argument(metavar="SHELL", help=", ".join(SHELLS))]
InstallOpt = Annotated[bool, typer.Option("--install", help="Write the script where the shell looks for it.")]


def register(app: typer.Typer) -> None:
    app.command("completion")(completion)


def completion(ctx: typer.Context, shell: ShellArg, install: InstallOpt = False) -> None:
    """Print the completion script of a shell, or install it.

    \b
    svcctl completion bash --install
    source <(svcctl completion zsh)
    svcctl completion fish | source
    """
    from svcctl.completion.scripts import script

    svc: Context = ctx.obj
    if shell not in SHELLS:
        raise UsageError(f"shell '{shell}' is not one", hint=f"shells are: {', '.join(SHELLS)}")
    if not install:
        svc.output.text(script(shell).rstrip("\n"))
        return
    path = place(shell, svc.environment)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script(shell), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    svc.diagnostics.note(f"installed {path}")
    svc.diagnostics.note(AFTERWARDS[shell].format(path=path, directory=path.parent))


def place(shell: str, environment: Mapping[str, str]) -> Path:
    """Where a shell finds scripts of a user, by the rules of each."""
    data = Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    config = Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return {
        "bash": data / "bash-completion" / "completions" / "svcctl",
        "zsh": data / "zsh" / "site-functions" / "_svcctl",
        "fish": config / "fish" / "completions" / "svcctl.fish",
    }[shell]


AFTERWARDS = {
    "bash": "it works in new shells; without the package bash-completion add to ~/.bashrc: source '{path}'",
    "zsh": "it works in new shells that have in ~/.zshrc: fpath=('{directory}' $fpath); autoload -U compinit; compinit",
    "fish": "it works in new shells",
}
