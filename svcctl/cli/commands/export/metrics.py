"""Write the metrics of a run to a file for the textfile collector of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from svcctl.io import prometheus

METRICS = {
    "success": "Whether the last run exported all of its windows (1) or not (0).",
    "timestamp_seconds": "When the last run ended, in epoch seconds.",
    "duration_seconds": "How long the last run took.",
    "until_seconds": "Where the next run starts, in epoch seconds; a run that failed may have exported more.",
    "verified_seconds": "Up to where 'export verify' had found all whole before the last run, in epoch seconds, or 0.",
    "rows": "Rows of the windows of the last run; after a failure, of those that it fetched.",
    "bytes": "Bytes that these windows take where they are stored.",
    "windows": "Windows of the last run.",
    "windows_fetched": "Windows that the last run fetched.",
    "windows_missing": "Windows that the last run could not export.",
    "retries": "Requests that the last run sent again.",
}
"""The meanings of the metrics of a run. The names of the metrics are without their prefix `svcctl_export_`."""

RECONCILED = {
    "reconcile_success": "Whether the last reconcile compared all of its windows (1) or not (0).",
    "reconcile_timestamp_seconds": "When the last reconcile ended, in epoch seconds.",
    "reconcile_windows": "Windows that the last reconcile compared.",
    "reconcile_windows_changed": "Windows that differed, and were replaced if it was no dry run.",
    "reconcile_windows_changed_again": "Those of them that reconciles have replaced more than once.",
    "reconcile_windows_fewer": "Windows that have more rows in the files than in the service; they stay.",
}
"""The meanings of the metrics of `export reconcile`. The names are without their prefix `svcctl_export_`."""


def write(path: Path, name: str, values: Mapping[str, float], metrics: Mapping[str, str] = METRICS) -> None:
    """Write the values of an export's metrics to a file, which is replaced.

    The label `export` is the name of the export.
    """
    lines = (
        prometheus.gauge(f"svcctl_export_{metric}", meaning, [({"export": name}, values[metric])])
        for metric, meaning in metrics.items()
    )
    prometheus.write(path, chain.from_iterable(lines))
