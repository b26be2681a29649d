"""`svcctl service queries`: the saved queries that `svcctl query --query-id` runs, straight in the file of state.

The service need not run for it. These commands are part of the `service` noun.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from svcctl.context import Context
from svcctl.inputs import query_text
from svcctl.options import FormatOpt, QueryFileOpt, QueryTextArg, YesOpt
from svcctl.terminal.records import SAVED_QUERIES

if TYPE_CHECKING:
    from svcctl.service.store import Store

IdArg = Annotated[str, typer.Argument(metavar="ID", help="ID of a saved query.")]

app = typer.Typer(help="Manage the saved queries of the local service.", rich_markup_mode=None, no_args_is_help=True)


@app.command("list")
def list_(ctx: typer.Context, format: FormatOpt = None) -> None:
    """List the saved queries"""
    svc: Context = ctx.obj
    from svcctl.service.queries import saved

    svc.output.records(SAVED_QUERIES, saved.listed(_store(svc)), svc.format(format, lists=True))


@app.command()
def show(ctx: typer.Context, id: IdArg) -> None:
    """Print the text of a saved query"""
    svc: Context = ctx.obj
    from svcctl.service.queries import saved

    svc.output.text(saved.get(_store(svc), id).text)


@app.command("set")
def set_(ctx: typer.Context, id: IdArg, text: QueryTextArg = None, file: QueryFileOpt = None) -> None:
    """Save a query, or replace the one with this ID

    \b
    svcctl service queries set failures 'from auth.all where result = "FAIL"'
    svcctl service queries set errors -F errors.q
    svcctl query --query-id failures --from 1d
    """
    svc: Context = ctx.obj
    query = query_text.read(text, file).rstrip("\n")
    from svcctl.service.queries import saved

    saved.put(_store(svc), saved.SavedQuery(id, query))


@app.command()
def rm(ctx: typer.Context, id: IdArg, yes: YesOpt = False) -> None:
    """Forget a saved query"""
    svc: Context = ctx.obj
    from svcctl.service.queries import saved

    store = _store(svc)
    saved.get(store, id)
    if not yes:
        svc.ask(f"Forget the saved query {id}?")
    saved.remove(store, id)


def _store(svc: Context) -> Store:
    from svcctl import extras

    extras.need("service", "the local service")
    from svcctl.service.provisioning.seed import open_store

    return svc.closing.enter_context(closing(open_store(svc.files)))
