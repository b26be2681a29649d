"""`svcctl help TOPIC`: pages about topics that concern several commands."""

from __future__ import annotations

from typing import Annotated

import typer

from svcctl.cli.app import App
from svcctl.cli.commands import NOUNS, page_of
from svcctl.cli.completion.words import Completes
from svcctl.cli.context import Context
from svcctl.cli.help import PARTS, TOPICS, topics
from svcctl.errors import UsageError
from svcctl.words import nearest

TopicArg = Annotated[
    str | None,
    typer.Argument(metavar="[TOPIC|COMMAND]", help="Topic or command to explain."),
    Completes(words=(*TOPICS, *PARTS, *(noun for noun in NOUNS if noun not in TOPICS))),
]


def register(app: App) -> None:
    app.command("help", help=page_of("help", help_))(help_)


def help_(ctx: typer.Context, topic: TopicArg = None) -> None:
    """Without a topic, list the topics. The help of a command is also at 'svcctl COMMAND --help'.

    \b
    svcctl help dates
    svcctl help job list
    """
    svc: Context = ctx.obj
    if topic is None:
        svc.output.text(topics.contents())
        return
    page = topics.read(topic) if topic in (*TOPICS, *PARTS) else topics.of_word(topic)
    if page is None:
        raise UsageError(f"no help topic or command '{topic}'", hint=_nearest(topic))
    svc.output.text(page)


def _nearest(topic: str) -> str:
    from svcctl.api.foreign_functions import function_answer

    if near := nearest(topic, [*TOPICS, *PARTS, *NOUNS]):
        return f"did you mean 'svcctl help {near}'?"
    answer, pages = function_answer(topic), topics.holding(topic)
    commands = " and ".join(f"'svcctl help {page}'" for page in pages[:2])
    if hints := [*([f"in a query, {answer}"] if answer else ()), *([f"{topic} is in {commands}"] if commands else ())]:
        return "; ".join(hints)
    if near := nearest(topic, topics.functions()):
        return f"did you mean 'svcctl help {near}'?"
    return "'svcctl help' lists the topics, 'svcctl --help' the commands"
