"""`svcctl help TOPIC`: pages about topics that concern several commands."""

from __future__ import annotations

from typing import Annotated

import typer

from svcctl import pages
from svcctl.api.suggest import nearest
from svcctl.app import App
from svcctl.commands import NOUNS, page_of
from svcctl.completion.words import Completes
from svcctl.context import Context
from svcctl.errors import UsageError

TopicArg = Annotated[
    str | None,
    typer.Argument(metavar="[TOPIC|COMMAND]", help="Topic or command to explain."),
    Completes(words=(*pages.TOPICS, *pages.PARTS, *(noun for noun in NOUNS if noun not in pages.TOPICS))),
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
        svc.output.text(pages.contents())
        return
    page = pages.read(topic) if topic in (*pages.TOPICS, *pages.PARTS) else pages.of_word(topic)
    if page is None:
        raise UsageError(f"no help topic or command '{topic}'", hint=_nearest(topic))
    svc.output.text(page)


def _nearest(topic: str) -> str:
    from svcctl.api.elsewhere import function_answer

    if near := nearest(topic, [*pages.TOPICS, *pages.PARTS, *NOUNS]):
        return f"did you mean 'svcctl help {near}'?"
    answer, topics = function_answer(topic), pages.holding(topic)
    found = " and ".join(f"'svcctl help {one}'" for one in topics[:2])
    if hints := [*([f"in a query, {answer}"] if answer else ()), *([f"{topic} is in {found}"] if found else ())]:
        return "; ".join(hints)
    if near := nearest(topic, pages.functions()):
        return f"did you mean 'svcctl help {near}'?"
    return "'svcctl help' lists the topics, 'svcctl --help' the commands"
