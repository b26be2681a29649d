"""The optional parts of svcctl: which packages each needs, and the error when they are not installed.

Whether a package is installed is looked up without importing it. So only an absent package leads to "install the
extra"; an import that fails for any other reason, such as a mistake in a module of ours, raises its own error.
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
"""The top-level packages that each extra installs for us to import, by its name in pyproject.toml."""


def need(extra: str, feature: str) -> None:
    """Raise MissingExtra, which names the feature and what to install, unless all packages of the extra are there."""
    if any(importlib.util.find_spec(package) is None for package in EXTRAS[extra]):
        raise MissingExtra(feature, extra)
