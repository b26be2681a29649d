"""The figures of a run as a file in Prometheus' text format, for the textfile collector of a node exporter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from svcctl.errors import IncompleteResult
from svcctl.io import files

METRICS = {
    "success": "Whether the last run exported all of its windows (1) or not (0).",
    "timestamp_seconds": "When the last run ended, in epoch seconds.",
    "duration_seconds": "How long the last run took.",
    "until_seconds": "Where the next run starts, in epoch seconds; a run that failed may have exported more.",
    "rows": "Rows of the windows of the last run; after a failure, of those that it fetched.",
    "bytes": "Bytes that these windows take where they are stored.",
    "windows": "Windows of the last run.",
    "windows_fetched": "Windows that the last run fetched.",
    "windows_missing": "Windows that the last run could not export.",
    "retries": "Requests that the last run sent again.",
}
"""The metrics and what they mean, by their names without `svcctl_export_`."""

RECONCILED = {
    "reconcile_success": "Whether the last reconcile compared all of its windows (1) or not (0).",
    "reconcile_timestamp_seconds": "When the last reconcile ended, in epoch seconds.",
    "reconcile_windows": "Windows that the last reconcile compared.",
    "reconcile_windows_changed": "Windows that differed, and were replaced if it was no dry run.",
    "reconcile_windows_changed_again": "Those of them that reconciles have replaced more than once.",
    "reconcile_windows_fewer": "Windows that have more rows in the files than in the service; they stay.",
}
"""The metrics of a reconcile."""


def to_text(name: str, values: Mapping[str, float], metrics: Mapping[str, str] = METRICS) -> str:
    """The values of the metrics of an export, which the label `export` names."""
    label = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    lines = []
    for metric, meaning in metrics.items():
        full = f"svcctl_export_{metric}"
        lines += [
            f"# HELP {full} {meaning}",
            f"# TYPE {full} gauge",
            f'{full}{{export="{label}"}} {values[metric]:.15g}',
        ]
    return "\n".join(lines) + "\n"


def is_writable(path: Path) -> bool:
    """Whether the file can be written, for a run to check before it begins."""
    with suppress(OSError):
        return files.is_direct(path) or os.access(path.parent, os.W_OK)
    return False


def write(path: Path, name: str, values: Mapping[str, float], metrics: Mapping[str, str] = METRICS) -> None:
    """Replace the file, so that a collector never reads half of it. IncompleteResult when it cannot be written.

    Devices, pipes and files that this process was started with, such as /dev/stdout, are written directly.
    """
    text = to_text(name, values, metrics).encode("utf-8", "surrogateescape")
    try:
        if files.is_direct(path):
            with files.open_direct(path) as stream:
                files.write_all(stream, text)
        else:
            files.write(path, text)
            path.chmod(0o644)
    except OSError as error:
        raise IncompleteResult(f"the metrics file {path} cannot be written: {error.strerror}") from None
