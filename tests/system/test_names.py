"""Names with several meanings, or with none: the lists of today, which may only become shorter."""

from support.naming import bare_constants, shared_class_names

SHARED_CLASS_NAMES = {
    "Call": 2,
    "Column": 3,
    "Command": 2,
    "Connection": 3,
    "Context": 2,
    "Damaged": 4,
    "Dates": 2,
    "Destination": 2,
    "Dialect": 2,
    "Difference": 2,
    "Document": 2,
    "Entry": 2,
    "Extent": 2,
    "Field": 2,
    "Files": 2,
    "Finding": 2,
    "Format": 2,
    "Group": 3,
    "Growing": 2,
    "Heading": 2,
    "Jobs": 2,
    "Json": 2,
    "Kind": 2,
    "Late": 2,
    "Lines": 2,
    "Local": 2,
    "Parameter": 2,
    "Part": 2,
    "Place": 2,
    "Proxy": 2,
    "Reader": 2,
    "Refusal": 2,
    "Rows": 2,
    "Run": 2,
    "Shape": 2,
    "Sink": 3,
    "Step": 2,
    "Subject": 2,
    "Table": 2,
    "Turns": 2,
    "Value": 2,
}
"""Public class names that several modules define, and how many do. Lower a number with each that goes."""


def test_a_class_name_has_one_meaning_but_for_those_that_are_listed() -> None:
    assert shared_class_names() == SHARED_CLASS_NAMES


def test_a_constant_says_whose_value_it_is() -> None:
    assert bare_constants() == {}
