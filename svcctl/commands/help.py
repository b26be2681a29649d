"""`svcctl help TOPIC`: pages about topics that concern several commands."""

from __future__ import annotations

from typing import Annotated

import typer

from svcctl import pages
from svcctl.commands import page_of
from svcctl.completion.words import Completes
from svcctl.context import Context
from svcctl.errors import UsageError

TopicArg = Annotated[
    str | None, typer.Argument(metavar="[TOPIC]", help="Topic to explain."), Completes(words=pages.TOPICS)
]


def register(app: typer.Typer) -> None:
    app.command("help", help=page_of("help", help_))(help_)


def help_(ctx: typer.Context, topic: TopicArg = None) -> None:
    """Without a topic, list the topics."""
    svc: Context = ctx.obj
    if topic is None:
        svc.output.text(pages.contents())
        return
    if topic not in pages.TOPICS:
        raise UsageError(
            f"no help topic '{topic}'",
            hint=f"topics are: {', '.join(pages.TOPICS)}; for the help of a command: svcctl COMMAND --help",
        )
    svc.output.text(pages.read(topic))
