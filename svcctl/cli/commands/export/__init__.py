"""`svcctl export`: write the events of a long time range to files. The range is fetched in windows, such as hours.

run.py         a run of an export
options.py     the options of a run
request.py     the order (what to export, and to which files) and the range of a run
report.py      the messages of a run
metrics.py     the metrics of a run for Prometheus
status.py      `status` and `rm`: show exports, and remove their saved states
verify.py      `verify`: find damaged and missing files
reconcile.py   `reconcile`: compare with the service, and replace changed windows
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
