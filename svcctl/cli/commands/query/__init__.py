"""`svcctl query`: run a query. The rows go to stdout or to a file. With --dest, a job sends the rows to a destination.

The module `options` has the options as they were typed, and `request` makes the request. `result` prints an answer
once, or follows it as it grows. `every` sends the request again and again, and `launch` starts a job.
"""

from __future__ import annotations

import typer

from svcctl.cli.commands import page_of
from svcctl.cli.commands.query.options import QueryOptions
from svcctl.cli.context import Context
from svcctl.cli.options import spread
from svcctl.errors import UsageError

READING = ("output", "fail_on_empty", "columns", "sort", "top", "chart", "every", "max_time")
"""The options that need the rows of the answer, so they do not work with --dest."""


def register(app: typer.Typer) -> None:
    app.command("query", help=page_of("query", query))(query)


@spread
def query(ctx: typer.Context, options: QueryOptions) -> None:
    """Examples:

    \b
    svcctl query 'from demo.ecommerce.data where statusCode >= 500' --from 2h
    svcctl query 'from auth.all group every 10m select count()' --from 1d --chart
    svcctl query 'from auth.all group by user' --from 1h --sort user:desc --top 5
    svcctl query -F errors.q --from 7ad --to today -o errors.csv.gz
    echo 'from auth.all select user' | svcctl query --from today -f ndjson
    svcctl query 'from auth.all' --from 1ad --to 1d -o yesterday.parquet
    svcctl query --load access.log 'from file where statusCode >= 500'
    svcctl query 'from auth.all' --from 1h --dest donothing
    """
    from svcctl.cli.commands.query import request, result

    svc: Context = ctx.obj
    if options.load:
        from svcctl.cli.commands.query import files

        files.query(svc, options)
        return
    _check_without_files(options)
    draft = request.asked(svc, options)
    if draft.destination is not None:
        if (name := options.given(*READING)) is not None:
            raise UsageError(f"{name} cannot be used with --dest: no rows come back")
        from svcctl.cli.commands.query.launch import launch

        launch(svc, request.job(svc, draft, options), options)
        return
    if options.every is not None and (name := options.given("output", "follow", "fail_on_empty")) is not None:
        raise UsageError(f"--every and {name} exclude each other")
    chosen = request.format_for(svc, options)
    draft, selection = request.cut_where_sorted(draft, options.selection)
    request.check(draft, chosen, selection, options)
    question = request.question(svc, draft, chosen, selection, options)
    if options.dry_run:
        result.show(svc, *question.requests)
    elif options.every is not None:
        from svcctl.cli.commands.query.every import repeat

        repeat(
            svc,
            lambda first: question if first else request.question(svc, draft, chosen, selection, options, says=False),
            options.every,
            options.max_time,
        )
    elif options.follow:
        result.follow(svc, question, options)
    else:
        result.once(svc, question, options)


def _check_without_files(options: QueryOptions) -> None:
    """Check the options of a query without --load.

    Raises UsageError for options about files, and if the range has no start.
    """
    if (name := options.reading.first_given or options.given("load_format", "load_time_zone")) is not None:
        raise UsageError(f"{name} is for files", hint="name them with --load FILE")
    if options.from_ is None:
        raise UsageError("missing --from", hint="add --from DATE, such as --from 1h; see 'svcctl query --help'")
