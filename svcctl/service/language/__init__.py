"""The query language. The text of a query becomes a tree, and the tree becomes one SQL statement with typed columns.

    grammar.lark, parser.py   text -> tree; errors have the line, the column and the expected words
    tree.py, printer.py       the tree of a query; the text of an expression of the tree
    functions.py              one row for each function; the help is written from these rows
    expressions.py, sql.py    types and SQL of an expression
    deviation.py              mean and standard deviation, the same in every engine
    dialect.py                the protocol for SQL that differs between engines
    translation.py, habits.py hints for people who write SQL or another query language
    compiler.py               clauses -> a Plan, see types.py
    query_error.py            the error of a query, with its place in the text

This package does not run queries. The input is a query, a catalog of tables, and the SQL dialect of an engine, such as
DuckDB. The output is a plan.
"""

from svcctl.service.language.compiler import compile
from svcctl.service.language.functions import FUNCTIONS, SAMPLE_ROWS, SECTIONS, Function
from svcctl.service.language.parser import MAX_BYTES, parse
from svcctl.service.language.query_error import QueryError
from svcctl.service.language.tree import RESERVED
from svcctl.service.language.types import Catalog, Column, Plan, Table, Type

__all__ = [
    "FUNCTIONS",
    "MAX_BYTES",
    "RESERVED",
    "SAMPLE_ROWS",
    "SECTIONS",
    "Catalog",
    "Column",
    "Function",
    "Plan",
    "QueryError",
    "Table",
    "Type",
    "compile",
    "parse",
]
