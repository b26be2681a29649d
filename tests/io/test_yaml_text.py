"""YAML whose scalars are texts: what is read, what is refused, and what is written."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from svcctl.io.yaml_text import (
    MAX_REPEATED_VALUES,
    PlainText,
    YamlError,
    boolean,
    documents,
    integer,
    items,
    json_value,
    number,
    yaml_of,
)


def value_of(text: str) -> Any:
    (tree,) = documents(text)
    return tree.value


@pytest.mark.parametrize(
    "text",
    [
        *("yes", "no", "on", "off", "y", "n", "true", "True", "FALSE", "Null", "NULL", "nan", "<<", "=", "a=b", "a#b"),
        *("0", "1", "-1", "+2", "0123", "0o17", "0x1F", "0b1", "1_000", "1:30", "190:20:30", "1e3", "1.5", "1.10"),
        *(".5", "5.", ".inf", "-.INF", ".nan", "2024-01-31", "2024-01-31T10:00:00Z", "2024-01-31 10:00:00 +1"),
        "0123456701234567",
    ],
)
def test_a_scalar_is_the_text_that_is_written(text: str) -> None:
    key = text if text != "<<" else "a key"
    assert value_of(f"a: {text}\nb: [{text}]\n{key}: c\n") == {"a": text, "b": [text], key: "c"}
    assert value_of(f"a: '{text}'\nb: \"{text}\"\nc: !!str {text}") == dict.fromkeys("abc", text)


@pytest.mark.parametrize("text", ["", "~", "null"])
def test_nothing_is_null_in_values_only(text: str) -> None:
    assert value_of(f"a: {text}\nb: '{text}'") == {"a": None, "b": text}
    if text:
        assert value_of(f"{text}: a") == {text: "a"}


def test_a_scalar_without_quotes_is_known_as_such() -> None:
    whole = value_of("a: 1\nb: '1'\nc: \"1\"\nd: |-\n  1\ne: >-\n  1\nf: !!str 1\n")
    assert [key for key, text in whole.items() if isinstance(text, PlainText)] == ["a"]
    assert set(whole.values()) == {"1"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", {"a": {"p": "1", "q": "2"}, "b": {"p": "1", "q": "3"}}),
        ("a: {<<: [{p: 1}, {p: 2, q: 3}], r: 4}", {"a": {"p": "1", "q": "3", "r": "4"}}),
        ("a: &x [1, no]\nb: *x", {"a": ["1", "no"], "b": ["1", "no"]}),
        ("a: &x {p: 1}\nb: &y {<<: *x}\nc: {<<: *y}", {key: {"p": "1"} for key in "abc"}),
        ("'<<': x", {"<<": "x"}),
        ("\ufeffa: 1\r\nb: 2\r\n", {"a": "1", "b": "2"}),
        (
            '{"a": "\\ud83d\\ude00", "b": 1.0, "c": "\\/", "d": null}',
            {"a": "\U0001f600", "b": "1.0", "c": "/", "d": None},
        ),
        ("%YAML 1.2\n---\na: 1\n...\n", {"a": "1"}),
        ("a: one\n  two\n", {"a": "one two"}),
    ],
)
def test_anchors_merges_json_and_other_line_ends_are_read(text: str, expected: object) -> None:
    assert value_of(text) == expected


def test_documents_and_lists_are_items() -> None:
    trees = items("a: 1\n---\n---\n- b: 2\n- 3\n--- ~\n--- {c: 4}\n")
    assert [(tree.value, tree.line) for tree in trees] == [({"a": "1"}, 1), ({"b": "2"}, 4), ("3", 5), ({"c": "4"}, 7)]


def test_keys_and_elements_have_lines() -> None:
    (tree,) = documents("a:\n  b.c: 1\n  d:\n    - 2\n    - [3,\n       {e: 4}]\n")
    assert tree.lines == {"a": 1, "a.b.c": 2, "a.d": 3, "a.d[0]": 4, "a.d[1]": 5, "a.d[1][0]": 5, "a.d[1][1]": 6} | {
        "a.d[1][1].e": 6
    }


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("a: 1\nb: 2\na: 3", ["key 'a' appears twice, first in line 1"]),
        ("a: 1\n'a': 3\n\"a\": 4", ["key 'a' appears twice, first in line 1"]),
        ("x: {y: {a: 1,\n a: 2}}", ["key 'x.y.a' appears twice, first in line 1"]),
        ("x: [{a: 1,\n a: 2}]", ["key 'x[0].a' appears twice, first in line 1"]),
        ("<<: {a: 1}\n<<: {b: 2}", ["key '<<' appears twice, first in line 1"]),
        ("x: {<<: {a: 1, a: 2}}", ["key 'x.a' appears twice, first in line 1"]),
        ("x: &x {a: 1}\ny: {<<: *x, a: 2}\n1: 1\n01: 1\n1.0: 1\n", []),
    ],
)
def test_a_key_that_appears_twice_is_known(text: str, problems: list[str]) -> None:
    (tree,) = documents(text)
    assert [key.problem for key in tree.repeated] == problems
    assert all(text.count("\n") == key.line - 1 or key.line == 2 for key in tree.repeated)


TAG = "a value begins with '!', which YAML takes for a tag"
STAR = "write '*' in quotes: YAML gives a bare * another meaning"
DEEP = "not YAML: it is nested too deeply, or has an alias of itself"


@pytest.mark.parametrize(
    ("text", "line", "problem", "hint"),
    [
        ("a: 1\nb: !!int 3", 2, TAG, "put the value in quotes"),
        ("a: !!binary aGk=", 1, TAG, "put the value in quotes"),
        ("a: !!python/object/apply:os.system [id]", 1, TAG, "put the value in quotes"),
        ("a: !hunter2", 1, TAG, "put the value in quotes"),
        ("a: !hunter!2", 1, TAG, "put the value in quotes"),
        ("{a: !hunter2}", 1, TAG, "put the value in quotes"),
        ("a: !<hunter2", 1, TAG, "put the value in quotes"),
        ("a: ! hunter2", 1, TAG, "put the value in quotes"),
        ("!!set {a, b}", 1, TAG, "put the value in quotes"),
        ("!!int 1: a", 1, TAG, "put the value in quotes"),
        ("a: *hunter2", 1, "not YAML: found an alias without its anchor (column 4)", STAR),
        ("a: [*]", 1, "not YAML: expected alphabetic or numeric character, but found ']' (column 6)", STAR),
        ("a:\n\tb: 1", 2, "not YAML: found character '\\t' that cannot start any token (column 1)",
         "indent with blanks, not with tabs"),
        ("a: @b", 1, "not YAML: found character '@' that cannot start any token (column 4)", "put the value in quotes"),
        ("a: b: c", 1, "not YAML: mapping values are not allowed here (column 5)", None),
        ("a: 1\nb: \x07", 2, "not YAML: character U+0007 is not allowed", None),
        ('a: 1\nb: "\\UFFFFFFFF"', 2, "not YAML: an escape is not a character", None),
        ("? [a]\n: b", 1, "a key must be text", None),
        ("? {a: b}\n: c", 1, "a key must be text", None),
        ("{a: 1, ? : 2}", 1, "a key must be text", None),
        ("a: {<<: b}", 1, "<< must name a mapping, or a list of mappings", None),
        ("a: {<<: [b]}", 1, "<< must name a mapping, or a list of mappings", None),
        ("&a [*a]", None, DEEP, None),
        ("&a {<<: *a}", None, DEEP, None),
        ("[" * 500, None, DEEP, None),
    ],
)  # fmt: skip
def test_a_text_that_cannot_be_read_has_a_line_and_shows_no_value(
    text: str, line: int | None, problem: str, hint: str | None
) -> None:
    with pytest.raises(YamlError) as caught:
        documents(text)
    assert (caught.value.line, caught.value.problem, caught.value.hint) == (line, problem, hint)


@pytest.mark.parametrize("form", ["[{}]", "{{<<: [{}]}}"])
def test_aliases_of_aliases_are_counted(form: str) -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {form.format(', '.join([f'*a{n - 1}'] * 10))}" for n in range(1, 9)]
    with pytest.raises(YamlError) as caught:
        documents("\n".join(lines))
    assert caught.value.problem == f"not YAML: its aliases repeat more than {MAX_REPEATED_VALUES:,} values"


@pytest.mark.parametrize(
    ("text", "whole", "any_number"),
    [
        ("0", 0, 0), ("14", 14, 14), ("-3", -3, -3), ("1_000", 1000, 1000),
        ("12345678901234567890", 12345678901234567890, 12345678901234567890),
        ("1.5", None, 1.5), ("1e3", None, 1000.0), ("1.5E-1", None, 0.15), ("0.0", None, 0.0),
        *((text, None, None) for text in (
            "014", "00", "0x1F", "0o17", "0b1", "1:30", "+1", ".5", "5.", "1__0", "_1", "1_", "", " 1", "1 ", "1\n",
            "١", "²", ".inf", "inf", ".nan", "nan", "true", "9" * 5000,
        )),
    ],
)  # fmt: skip
def test_a_number_has_one_spelling(text: str, whole: int | None, any_number: float | None) -> None:
    assert (integer(text), number(text)) == (whole, any_number)


def test_words_for_true_and_false() -> None:
    assert [boolean(text) for text in ("true", "True", "YES", "on", "false", "No", "off", "y", "1", "")] == [
        *(True, True, True, True, False, False, False, None, None, None)
    ]


def test_json_gives_a_spelling_its_type() -> None:
    texts = ("1", "1.50", "-0.0", "true", "True", "01", "1_0", "1e400", "NaN", "9" * 5000)
    assert [json_value(text) for text in texts] == [1, 1.5, -0.0, True, *texts[4:]]


@given(st.dictionaries(st.text(min_size=1), st.none() | st.text() | st.lists(st.text(), max_size=3), max_size=4))
def test_what_is_written_is_read_back(content: dict[str, Any]) -> None:
    assert value_of(yaml_of({"a": content})) == {"a": content}


@pytest.mark.parametrize("text", ["y", "N", "1e3", "25921e05", "12345678e123", "1.5E-3", ".5e1", "0o17"])
def test_a_text_is_in_quotes_also_for_programs_of_other_versions(text: str) -> None:
    assert yaml_of({"a": text}) == f"a: '{text}'\n"
    assert yaml_of({"a": text + "x"}) == f"a: {text}x\n"


@pytest.mark.parametrize("text", ["0123", "no", "null", "~", "1:30", "2024-01-31", "1e3", "=", "<<", "!x", "*x", "&x"])
def test_other_programs_read_a_written_text_as_a_text(text: str) -> None:
    written = yaml_of({"a": PlainText(text), text: text})
    assert yaml.safe_load(written) == {"a": text, text: text} == value_of(written)
