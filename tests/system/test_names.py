"""A class name has one meaning, a constant says whose value it is, and locals are nouns."""

from support.naming import bare_constants, shared_class_names, vague_locals


def test_no_two_modules_define_a_public_class_of_the_same_name() -> None:
    assert shared_class_names() == {}


def test_a_constant_says_whose_value_it_is() -> None:
    assert bare_constants() == {}


def test_locals_are_nouns() -> None:
    assert vague_locals() == {}
