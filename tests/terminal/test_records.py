"""Listings: their columns, whether or not there are models."""

from support.listings import laid_out

from svcctl.terminal.layout import TableColumn
from svcctl.terminal.records import row_listing


def test_rows_without_a_model_have_the_named_columns() -> None:
    assert laid_out(row_listing("id", "query", id="id"), [["a", "from t"]], shown=True) == (
        [TableColumn("id", "id"), TableColumn("query")],
        [["a", "from t"]],
    )


def test_an_empty_list_still_has_its_columns() -> None:
    assert laid_out(row_listing("id", "query"), [], shown=False) == ([TableColumn("id"), TableColumn("query")], [])
