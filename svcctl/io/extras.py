"""The optional parts of svcctl: the packages that each needs, and the error if they are not installed.

Packages are looked up without importing them. So the advice to install an extra appears only for a missing package; an
import that fails for another reason, such as a mistake in our code, raises its own error.
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
"""The top-level packages that svcctl imports for each extra of pyproject.toml."""


def need(extra: str, feature: str) -> None:
    """Raise MissingExtra, which names the feature and the installation command, if the extra lacks a package."""
    if any(importlib.util.find_spec(package) is None for package in EXTRAS[extra]):
        raise MissingExtra(feature, extra)
