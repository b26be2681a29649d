"""`svcctl export`: a long range in windows, into files that are whole.

run.py         the export itself
report.py      what a run says
metrics.py     the figures of a run for collectors
reconcile.py   `reconcile`: compare with the service, and replace what differs
span.py        the span of a run, from when to when, and what to say about it
verify.py      `status`, `verify` and `rm`: what earlier runs left
options.py     the options of an export
"""

from __future__ import annotations

import typer

from svcctl.cli.commands import page_of
from svcctl.cli.commands.export import reconcile, run, verify


def register(app: typer.Typer) -> None:
    app.command("export", help=page_of("export", run.export))(run.export)
    app.command("export status")(verify.status)
    app.command("export verify")(verify.verify)
    app.command("export reconcile")(reconcile.reconcile)
    app.command("export rm")(verify.rm)
