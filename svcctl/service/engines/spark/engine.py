"""Runs plans on Spark. Spark and this service must both have access to the shared folder of tables.

A plan becomes a statement with a list of the files that the plan needs, and with the columns of these files. So Spark
need not know the format of the tables.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from sqlglot import exp

from svcctl.service.engines import ARROW, ROWS_PER_BATCH, Mark
from svcctl.service.engines.lake import Lake
from svcctl.service.engines.lake.selects import counted, with_keys
from svcctl.service.engines.lake.snapshot import NO_LOAD, File, Loads, Snapshot
from svcctl.service.engines.spark.dialect import POSITION, SparkDialect
from svcctl.service.engines.spark.patterns import Matcher, pattern_for
from svcctl.service.engines.spark.session import Server, Session, SparkConnection
from svcctl.service.engines.spark.spill import ROWS, Spills, is_large
from svcctl.service.engines.spark.stream import SparkStream
from svcctl.service.language.dialect import write
from svcctl.service.language.types import Plan, Type

TYPES: Mapping[Type, str] = {
    Type.TIMESTAMP: "TIMESTAMP",
    Type.STR: "STRING",
    Type.INT4: "INT",
    Type.INT8: "BIGINT",
    Type.FLOAT8: "DOUBLE",
    Type.BOOL: "BOOLEAN",
    Type.IP4: "BIGINT",
}


class SparkReader:
    """Runs plans over the tables of a shared folder. Results of at least `spilled_rows` rows are written to files."""

    dialect = SparkDialect()

    def __init__(self, lake: Lake, connection: SparkConnection, *, spilled_rows: int = ROWS) -> None:
        self._lake = lake
        self._spilled_rows = spilled_rows
        self.connection = connection
        self._spills = Spills(lake)

    def close(self) -> None:
        self._spills.close()
        self.connection.close()

    @contextmanager
    def stream(
        self,
        plan: Plan,
        *,
        since: Mark | None = None,
        until: Mark | None = None,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> Iterator[SparkStream]:
        lake = self._lake
        table = lake.snapshot(plan.table)
        loads = lake.between(table, since, until)
        plan, files = counted(plan, table.within(plan.start, plan.end, loads), loads)
        session = self.connection.session()
        paths = _paths(lake.folder.table_uri(table.name), files, session.matcher)
        types = [ARROW[column.type] for column in plan.columns] + [ARROW[Type.TIMESTAMP]] * plan.dated
        files_name = _name_of_files()
        select = _over_files(plan, table, loads, session.matcher, files_name)
        if not is_large(select, sum(file.weight for file in files), self._spilled_rows):
            run = session.proto.Plan(root=_relation(session, write(select, self.dialect), table, paths, files_name))
            with closing(SparkStream(self.connection, session, run, types, rows_per_batch)) as stream:
                yield stream
            return
        select, keys = with_keys(select)
        relation = _relation(session, write(select, self.dialect), table, paths, files_name)
        with self.connection.translated(session):
            spill = self._spills.begin()
        try:
            run = _written(session, relation, _reached(f"{self._spills.uri}/{spill}", session.matcher))
            read = partial(self._spills.read, spill, keys, rows_per_batch)
            with closing(SparkStream(self.connection, session, run, types, rows_per_batch, read)) as stream:
                yield stream
        finally:
            self._spills.end(spill)


def on_spark(lake: Lake, uri: str, environment: Mapping[str, str]) -> SparkReader:
    """Return a reader that runs plans on the Spark server at a URI, with settings from the environment."""
    return SparkReader(lake, SparkConnection(Server.of(uri, environment)))


def _name_of_files() -> str:
    """Return a unique name for the files of one statement.

    The name must be unique because all statements of a session see the name.
    """
    return f"svcctl_{uuid.uuid4().hex}"


def _over_files(plan: Plan, table: Snapshot, loads: Loads | None, matcher: Matcher, files_name: str) -> exp.Select:
    """Return the plan's SELECT over the rows of some files. The SELECT reads these rows from the table `files_name`."""
    select = plan.select.copy()
    node = next(node for node in select.find_all(exp.Table))
    for regexp in list(select.find_all(exp.RegexpLike, exp.RegexpExtract)):
        regexp.set("expression", exp.Literal.string(pattern_for(regexp.expression.this, matcher)))
    columns = [exp.column(column.name, quoted=True) for column in table.columns]
    load, row = (exp.column(name, quoted=True) for name in (table.hidden.load, table.hidden.row))
    place = exp.func("struct", load, row)
    rows = exp.select(*columns, exp.alias_(place, POSITION, quoted=True)).from_(exp.to_identifier(files_name))
    if loads is not None and (loads.numbers or not loads.excluded):
        number = exp.Coalesce(this=load.copy(), expressions=[exp.Literal.number(NO_LOAD)])
        among: exp.Expr = exp.In(this=number, expressions=[*map(exp.Literal.number, sorted(loads.numbers))])
        if not loads.numbers:
            among = exp.false()
        rows = rows.where(exp.Not(this=among) if loads.excluded else among)
    node.replace(rows.subquery(exp.to_identifier("t", quoted=True)))
    return select


def _paths(uri: str, files: Sequence[File], matcher: Matcher) -> list[str]:
    return [f"{_reached(uri, matcher)}/{file.path}" for file in files]


def _reached(uri: str, matcher: Matcher) -> str:
    """Return a URI of the shared folder in the form that the server needs.

    The server of Apache Spark needs the scheme `s3a` for S3.
    """
    if "://" not in uri:
        return f"file://{uri}"
    return f"s3a{uri.removeprefix('s3')}" if matcher is Matcher.JAVA and uri.startswith("s3://") else uri


def _written(session: Session, relation: Any, uri: str) -> Any:
    """Return a plan that writes the rows of a relation to a folder of Parquet files, in order."""
    proto = session.proto
    mode = proto.WriteOperation.SaveMode.SAVE_MODE_ERROR_IF_EXISTS
    operation = proto.WriteOperation(input=relation, source="parquet", path=uri, mode=mode)
    return proto.Plan(command=proto.Command(write_operation=operation))


def _relation(session: Session, statement: str, table: Snapshot, paths: Sequence[str], files_name: str) -> Any:
    """Return a statement in which `files_name` is a table with the rows of some files."""
    proto = session.proto
    fields = [(column.name, TYPES[column.type]) for column in table.columns]
    fields += [(name, "BIGINT") for name in (table.hidden.load, table.hidden.row)]
    if paths:
        schema = ", ".join(f"{_quote(name)} {type_}" for name, type_ in fields)
        source = proto.Read.DataSource(format="parquet", schema=schema, paths=paths)
        read = proto.Relation(common=_common(proto, 0), read=proto.Read(data_source=source))
    else:
        nothing = ", ".join(f"CAST(NULL AS {type_}) AS {_quote(name)}" for name, type_ in fields)
        read = proto.Relation(common=_common(proto, 0), sql=proto.SQL(query=f"SELECT {nothing} WHERE false"))
    view = proto.Relation(common=_common(proto, 1), subquery_alias=proto.SubqueryAlias(input=read, alias=files_name))
    root = proto.Relation(common=_common(proto, 2), sql=proto.SQL(query=statement))
    return proto.Relation(common=_common(proto, 3), with_relations=proto.WithRelations(root=root, references=[view]))


def _common(proto: Any, plan_id: int) -> Any:
    return proto.RelationCommon(plan_id=plan_id)


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
