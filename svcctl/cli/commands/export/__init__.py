"""`svcctl export`: a long range in windows, into files that are whole.

run.py         the export itself
report.py      the notes on a run
metrics.py     the figures of a run for collectors
reconcile.py   `reconcile`: compare with the service, and replace what differs
options.py     the options of an export
request.py     the requested export: its range, and the notes on it
status.py      `status` and `rm`: show and remove earlier exports
verify.py      `verify`: find their damaged and missing files
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
