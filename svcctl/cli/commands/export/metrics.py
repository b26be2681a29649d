"""Write the metrics of a run to a file for the textfile collector of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from svcctl.io import prometheus

METRICS = {
    "success": "1 if the last run exported all of its windows, otherwise 0.",
    "timestamp_seconds": "End of the last run, in epoch seconds.",
    "duration_seconds": "Duration of the last run, in seconds.",
    "until_seconds": "Start of the range of the next run, in epoch seconds; a failed run may have exported more.",
    "verified_seconds": "Date up to which 'export verify' had found all files intact before the last run, in "
    "epoch seconds; 0 if there is no such date.",
    "rows": "Rows of the windows of the last run; after a failure, rows of the fetched windows only.",
    "bytes": "Stored bytes of the windows that are counted in svcctl_export_rows.",
    "windows": "Windows of the last run.",
    "windows_fetched": "Windows that the last run fetched.",
    "windows_missing": "Windows that the last run could not export.",
    "retries": "Requests that the last run sent again.",
}
"""The meanings of the metrics of a run. The names of the metrics are without their prefix `svcctl_export_`."""

RECONCILED = {
    "reconcile_success": "1 if the last reconcile compared all of its windows, otherwise 0.",
    "reconcile_timestamp_seconds": "End of the last reconcile, in epoch seconds.",
    "reconcile_windows": "Windows that the last reconcile compared.",
    "reconcile_windows_changed": "Windows that differed. A run without --dry-run replaced them.",
    "reconcile_windows_changed_again": "Windows that differed and that reconciles have replaced more than once.",
    "reconcile_windows_fewer": "Windows that have more rows in the files than in the service. Their files are kept.",
}
"""The meanings of the metrics of `export reconcile`. The names are without their prefix `svcctl_export_`."""


def write(path: Path, name: str, values: Mapping[str, float], metrics: Mapping[str, str] = METRICS) -> None:
    """Replace a file with the values of an export's metrics.

    The label `export` is the name of the export.
    """
    lines = (
        prometheus.gauge(f"svcctl_export_{metric}", meaning, [({"export": name}, values[metric])])
        for metric, meaning in metrics.items()
    )
    prometheus.write(path, chain.from_iterable(lines))
