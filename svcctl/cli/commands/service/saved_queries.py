"""`svcctl service queries`: the saved queries of the local service, which `svcctl query --query-id` runs."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated

import typer

from svcctl.cli.app import App
from svcctl.cli.commands.service.control import need_service, open_state
from svcctl.cli.completion.words import Completes
from svcctl.cli.context import Context
from svcctl.cli.inputs import query_text
from svcctl.cli.listing import ListOptions, print_list
from svcctl.cli.options import QueryFileOpt, QueryTextArg, YesOpt, spread
from svcctl.terminal.records import ListField, Listing

if TYPE_CHECKING:
    from svcctl.service.queries.saved_queries import SavedQuery

IdArg = Annotated[str, typer.Argument(metavar="ID", help="ID of a saved query."), Completes("queries")]

SAVED_QUERIES: Listing[SavedQuery] = Listing(
    (ListField("id", attrgetter("id"), "id"), ListField("query", attrgetter("text")))
)

app = App(help="Manage the saved queries of the local service.", no_args_is_help=True)


@app.command("list")
@spread
def list_(ctx: typer.Context, options: ListOptions) -> None:
    """List the saved queries"""
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.queries import saved_queries

    print_list(svc, SAVED_QUERIES, lambda: saved_queries.list_queries(store), options, "no saved queries")


@app.command()
def show(ctx: typer.Context, id: IdArg) -> None:
    """Print the text of a saved query"""
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.queries import saved_queries

    svc.output.text(saved_queries.get(store, id).text)


@app.command("set")
def set_(ctx: typer.Context, id: IdArg, text: QueryTextArg = None, file: QueryFileOpt = None) -> None:
    """Save a query, or replace the one with this ID

    \b
    svcctl service queries set failures 'from auth.all where result = "FAIL"'
    svcctl service queries set errors -F errors.q
    svcctl query --query-id failures --from 1d
    """
    query = query_text.read(text, file).rstrip("\n")
    svc: Context = ctx.obj
    need_service()
    from svcctl.service.queries import saved_queries

    entry = saved_queries.SavedQuery(id, query)
    saved_queries.check(entry)  # checked before a state is created
    saved_queries.put(open_state(svc), entry)
    svc.diagnostics.note(f"saved query {id}")


@app.command()
def rm(ctx: typer.Context, id: IdArg, yes: YesOpt = False) -> None:
    """Delete a saved query"""
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.queries import saved_queries

    saved_queries.get(store, id)
    if not yes:
        svc.ask(f"Delete the saved query {id}?")
    saved_queries.remove(store, id)
    svc.diagnostics.note(f"deleted the saved query {id}")
