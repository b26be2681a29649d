"""A format is found by its name, and prints lists in its own way."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from svcctl.errors import UsageError
from svcctl.terminal.diagnostics import Diagnostics
from svcctl.terminal.formats import FORMATS, OutputFormat, alone, check_file, find_format, of_file
from svcctl.terminal.layout import Style, TableColumn
from svcctl.terminal.output import Output
from svcctl.terminal.records import row_listing

# What the errors say, each once; the tests state their kind.
WORDS = {
    "an unknown format": "unknown format 'cvs'",
    "not written": "svcctl cannot write .{ending} files",
    "a chart in a file": "a chart is text: svcctl cannot write .{ending} files",
    "xml": "only a service writes xml",
    "too many columns": "format {name} has at most {most} columns, and this result has {most_}",
}
HINTS = {
    "an unknown format": "did you mean 'csv'? formats are: auto, table, vertical, csv, tsv, ndjson, json",
    "a chart in a file": "name the file .txt",
    "too many columns": "name some with --columns, select fewer in the query, or use --format csv or vertical",
}


def test_formats_are_found_by_name_and_auto_by_where_stdout_goes() -> None:
    assert find_format("auto", is_terminal=True) is FORMATS["table"]
    assert find_format("auto", is_terminal=False) is FORMATS["csv"]
    with pytest.raises(UsageError) as caught:
        find_format("cvs", is_terminal=False, lists=True)
    assert (caught.value.message, caught.value.hint) == (
        WORDS["an unknown format"],
        HINTS["an unknown format"],
    )
    with pytest.raises(UsageError) as caught:
        find_format("xslx", is_terminal=False)
    assert (caught.value.hint or "").startswith("did you mean 'xlsx'? formats are: auto, table, ")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html"])
def test_a_file_that_would_not_hold_what_its_name_says_is_refused(ending: str) -> None:
    path = Path(f"out.{ending}")
    with pytest.raises(UsageError) as caught:
        of_file(path)
    assert caught.value.message == WORDS["not written"].format(ending=ending)
    with pytest.raises(UsageError) as caught:
        check_file(path, FORMATS["chart"], pytest.fail, by_user=True)
    assert (caught.value.message, caught.value.hint) == (
        WORDS["a chart in a file"].format(ending=ending),
        HINTS["a chart in a file"],
    )


COLUMNS = [TableColumn("name"), TableColumn("used"), TableColumn("n")]
ROWS = [['say "hi", ü', True, 1], ["", False, None]]
PRINTED = {
    "table": 'name         used   n\n-----------  -----  -\nsay "hi", ü  true   1\n             false  -\n',
    "vertical": 'row 1\nname  say "hi", ü\nused  true\nn     1\nrow 2\nname  \nused  false\nn     -\n',
    "csv": 'name,used,n\n"say ""hi"", ü",true,1\n"",false,\n',
    "tsv": 'name\tused\tn\n"say ""hi"", ü"\ttrue\t1\n""\tfalse\t\n',
    "ndjson": '{"name":"say \\"hi\\", ü","used":true,"n":1}\n{"name":"","used":false,"n":null}\n',
    "json": '[{"name":"say \\"hi\\", ü","used":true,"n":1},{"name":"","used":false,"n":null}]\n',
}


@pytest.mark.parametrize("name", [row.name for row in FORMATS.values() if row.lists])
def test_a_list_is_printed_in_every_list_format(name: str) -> None:
    stdout = io.TextIOWrapper(written := io.BytesIO(), encoding="utf-8")
    Output(stdout, Diagnostics(io.StringIO()), color=False).records(
        row_listing("name", "used", "n"), ROWS, FORMATS[name]
    )
    assert written.getvalue().decode() == PRINTED[name]


@pytest.mark.parametrize("row", [row for row in FORMATS.values() if row.lists or row.lines or not row.raw])
def test_a_format_of_rows_has_its_layout(row: OutputFormat) -> None:
    assert row.arranges


def test_a_format_without_a_layout_is_refused_where_rows_are_to_be_written() -> None:
    with pytest.raises(UsageError) as caught:
        FORMATS["xml"].write(COLUMNS, ROWS, Style(), print)
    assert caught.value.message == WORDS["xml"]


@pytest.mark.parametrize(("name", "most"), [("table", 500), ("chart", 50), ("xls", 16_384)])
def test_too_many_columns_are_refused_before_a_row_is_read(name: str, most: int) -> None:
    def rows_asked_for() -> Iterator[list[int]]:
        pytest.fail("a row was read")
        yield []

    columns = [TableColumn(f"c{number}", "int8") for number in range(most + 1)]
    with pytest.raises(UsageError) as caught:
        if FORMATS[name].packing is None:
            list(FORMATS[name].write(columns, rows_asked_for(), Style(), print))
        else:
            FORMATS[name].pack(columns, rows_asked_for(), Style(), io.BytesIO(), print)
    assert (caught.value.message, caught.value.hint) == (
        WORDS["too many columns"].format(name=name, most=most, most_=most + 1),
        HINTS["too many columns"],
    )


def test_a_single_thing_is_an_object_in_json_and_the_same_in_other_formats() -> None:
    def printed(format: OutputFormat, rows: list[list[object]]) -> list[str]:
        return list(format.write(COLUMNS, rows, Style(), lambda note: None))

    assert printed(alone(FORMATS["json"]), ROWS[:1]) == ['{"name":"say \\"hi\\", ü","used":true,"n":1}']
    assert printed(alone(FORMATS["json"], keyed=True), [["a", True, 1], ["b", None, 2]]) == [
        '{"a":{"used":true,"n":1},"b":{"used":null,"n":2}}'
    ]
    assert alone(FORMATS["csv"], keyed=True) is FORMATS["csv"]
