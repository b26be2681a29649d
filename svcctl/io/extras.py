"""The extras of svcctl, which are its optional parts.

This module lists the packages of each extra, and raises the error for a missing package.

Packages are looked up without being imported. So an import that fails for another reason raises its usual error.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from svcctl.errors import MissingExtra

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "service": (
        "alembic",
        "duckdb",
        "jwt",
        "lark",
        "pyarrow",
        "sqlalchemy",
        "sqlglot",
        "starlette",
        "uvicorn",
        "xlsxwriter",
    ),
    "postgres": ("psycopg",),
    "kafka": ("confluent_kafka",),
    "s3": ("obstore", "pyzipper"),
    "hdfs": ("hdfs_native",),
    "lake": ("deltalake",),
    "spark": ("grpc", "pyspark"),
    "parquet": ("pyarrow",),
    "xlsx": ("xlsxwriter",),
    "zstd": ("zstandard",),
    "dask": ("distributed",),
}
"""The extras of pyproject.toml, with the top-level packages that svcctl imports for each extra."""


def need(extra: str, feature: str) -> None:
    """Raise MissingExtra if a package of the extra is not installed.

    The error names the feature and the command that installs the extra.
    """
    if any(importlib.util.find_spec(package) is None for package in EXTRAS[extra]):
        raise MissingExtra(feature, extra)
