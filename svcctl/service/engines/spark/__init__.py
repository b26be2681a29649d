"""Spark, or another server that supports Spark Connect, as an engine for the tables in a shared folder.

engine.py      runs plans as statements over the files that the plans need
stream.py      a running statement, and its batches
spill.py       large results, which the server writes to files
session.py     the session on the server, TLS and token, and errors
dialect.py     the parts of Spark's SQL that differ from the SQL of other engines
sql.py         writes Spark's SQL with sqlglot
dates.py       formats and parses dates
patterns.py    translates regular expressions for Java and for Rust
"""

from svcctl.service.engines.spark.engine import SparkReader, on_spark
from svcctl.service.engines.spark.session import Server, SparkConnection

__all__ = ["Server", "SparkConnection", "SparkReader", "on_spark"]
