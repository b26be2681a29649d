"""`svcctl export`: a long range in windows, into files that are whole.

run.py         the export itself
report.py      what a run says
metrics.py     the figures of a run for collectors
reconcile.py   `reconcile`: compare with the service, and replace what differs
options.py     the options of an export
request.py     the export that is requested: its range, and what to say about it
status.py      `status` and `rm`: what there is of earlier exports
verify.py      `verify`: what is damaged or missing of them
"""

from __future__ import annotations

import typer

from svcctl.cli.app import App, DefaultGroup
from svcctl.cli.commands import page_of
from svcctl.cli.commands.export import reconcile, run, status, verify


def register(app: typer.Typer) -> None:
    verbs = App()
    verbs.command()(status.status)
    verbs.command()(verify.verify)
    verbs.command()(reconcile.reconcile)
    verbs.command()(status.rm)
    app.add_typer(verbs, name="export", cls=DefaultGroup, callback=run.export, help=page_of("export", run.export))
