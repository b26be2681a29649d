"""Role files: their shapes, their errors with file, line and key, and how a role differs from the existing one."""

from pathlib import Path

import pytest
from support import ROOT

from svcctl.cli.inputs.role_files import WrittenRole, read_roles, require_sound, written
from svcctl.cli.inputs.yaml_files import YamlDocument, parse, unique
from svcctl.errors import UsageError


def parse_roles(text: str, source: str) -> list[WrittenRole]:
    documents = parse(text, source, "role")
    unique(documents, "role")
    return list(map(written, documents))


WHOLE = """\
# a comment
name: Night shift
description: Looks
policies: [Search, Alerts]
applications: explorer
resourceIds:
  tables: [1, 2]
  7: []
finderName: default
defaultApplicationName: explorer
"""


def test_a_file_holds_the_interfaces_fields_and_knows_their_lines() -> None:
    (role,) = parse_roles(WHOLE, "role.yaml")
    assert role.fields == {
        "name": "Night shift",
        "description": "Looks",
        "policies": ["Search", "Alerts"],
        "applications": "explorer",
        "resourceIds": {"tables": [1, 2], "7": []},
        "finderName": "default",
        "defaultApplicationName": "explorer",
    }
    assert role.document.lines == {
        "name": 2,
        "description": 3,
        "policies": 4,
        "applications": 5,
        "resourceIds": 6,
        "policies[0]": 4,
        "policies[1]": 4,
        "resourceIds.tables": 7,
        "resourceIds.tables[0]": 7,
        "resourceIds.tables[1]": 7,
        "resourceIds.7": 8,
        "finderName": 9,
        "defaultApplicationName": 10,
    }
    assert role.role.body() == {
        "name": "Night shift",
        "description": "Looks",
        "policies": ["Search", "Alerts"],
        "applications": ["explorer"],
        "resourceIds": {"tables": [1, 2], "7": []},
        "finderName": "default",
        "defaultApplicationName": "explorer",
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("name: a", ["a"]),
        ('{"name": "a", "policies": "*"}', ["a"]),
        ("- name: a\n- name: b", ["a", "b"]),
        ("name: a\n---\nname: b\n---\n", ["a", "b"]),
        ("---\n- name: a\n---\n[{name: b}]", ["a", "b"]),
        ("- &base\n  name: a\n- <<: *base\n  name: b", ["a", "b"]),
        ("", []),
        ("# nothing", []),
    ],
)
def test_a_file_holds_one_role_or_many(text: str, names: list[str]) -> None:
    assert [role.fields["name"] for role in parse_roles(text, "roles.yaml")] == names


def test_a_name_is_the_text_that_is_written_and_an_id_is_a_number() -> None:
    (role,) = parse_roles("name: 007\npolicies: [no, 1.10]\nresourceIds: {01: [1, '2', 3_000], no: []}\n", "role.yaml")
    assert role.role.body() == {
        "name": "007",
        "policies": ["no", "1.10"],
        "resourceIds": {"01": [1, 2, 3000], "no": []},
    }


ERRORS: list[tuple[str, str, str | None]] = [
    (
        "name: a\npolicies: *\n",
        "roles.yaml, line 2: not YAML: expected alphabetic or numeric character, but found '\\n' (column 12)",
        "write '*' in quotes: YAML gives a bare * another meaning",
    ),
    ("name: [a", "roles.yaml, line 1: not YAML: expected ',' or ']', but got '<stream end>' (column 9)", None),
    ("name: a\npolicies: \0", "roles.yaml, line 2: not YAML: character U+0000 is not allowed", None),
    ("&a\nname: a\npolicies: *a", "roles.yaml: not YAML: it is nested too deeply, or has an alias of itself", None),
    ("just text", "roles.yaml, line 1: a role must be a mapping of fields", None),
    ("- name: a\n- b", "roles.yaml, line 2: a role must be a mapping of fields", None),
    ("name: a\npolicies: x\nname: b", "roles.yaml, line 3: key 'name' appears twice, first in line 1", None),
    (
        "name: a\nresourceIds: {x: [1], x: [2]}",
        "roles.yaml, line 2: key 'resourceIds.x' appears twice, first in line 2",
        None,
    ),
    ("name: a\n[1]: b", "roles.yaml, line 2: a key must be text", None),
    ("name: a\n---\nname: a", "roles.yaml, line 3: role 'a' appears twice, first in roles.yaml, line 1", None),
    (
        "name: !!python/name:os.system x",
        "roles.yaml, line 1: a value begins with '!', which YAML takes for a tag",
        "put the value in quotes",
    ),
]


@pytest.mark.parametrize(("text", "message", "hint"), ERRORS)
def test_an_error_names_file_line_and_key(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        parse_roles(text, "roles.yaml")
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "name: a\npolices: [Search]",
            "roles.yaml, line 2: unknown field 'polices' (did you mean 'policies'?)",
            None,
        ),
        (
            "name: a\n---\nname: b\npolicies: x\nresourceIds:\n  t: 1\nmaxVault: 2",
            "roles.yaml, line 6: resourceIds.t is not a list of integers (rule 8)",
            "1 more; see them with 'svcctl role lint roles.yaml'",
        ),
        (
            "policies: x\napplications: []",
            "roles.yaml, line 1: the name is missing (rule 1)",
            None,
        ),
        ("name: [7]", "roles.yaml, line 1: name is not text (rule 1)", None),
        ("name: a\ndescription:", "roles.yaml, line 2: description has no value", None),
        ("name: a\npolicies: [x, ~]", "roles.yaml, line 2: policies: an element has no value (rule 3)", None),
        *(
            (
                f"name: a\napplications: x\nresourceIds:\n  t:\n    - 1\n    - {number}",
                f"roles.yaml, line 6: resourceIds.t: '{number}' is not an integer (rule 8)",
                None,
            )
            for number in ("010", "0x1F", "1:30", "1.5", "1e3", "+1", "yes", "text", "2024-01-31")
        ),
        ("description: x\nname: Owner", "roles.yaml, line 2: 'Owner' is the name of a built-in role", None),
    ],
)
def test_an_error_in_a_role_names_its_place(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        list(map(require_sound, parse_roles(text, "roles.yaml")))
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_role_from_options_has_no_file_to_look_at() -> None:
    with pytest.raises(UsageError) as caught:
        require_sound(WrittenRole(YamlDocument({"name": "a", "policies": []})))
    assert (caught.value.message, caught.value.hint) == (
        "the options: no policies, so there must be at least one application (rule 4)",
        None,
    )


def test_the_readmes_role_has_no_findings() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (role,) = parse_roles(readme.partition("night-shift.yaml <<'EOF'\n")[2].partition("EOF\n")[0], "night-shift.yaml")
    assert (role.role.name, role.findings()) == ("Night shift", [])


def test_a_file_that_cannot_be_read_or_holds_nothing_is_an_error(tmp_path: Path) -> None:
    empty, latin = tmp_path / "empty.yaml", tmp_path / "latin.yaml"
    empty.write_text("")
    latin.write_bytes(b"name: \xe9")
    for path, message in (
        (tmp_path / "none.yaml", f"roles cannot be read from {tmp_path}/none.yaml: No such file or directory"),
        (empty, f"{empty}: it contains no role"),
        (latin, f"roles cannot be read from {latin}: byte 7 is not UTF-8"),
    ):
        with pytest.raises(UsageError) as caught:
            read_roles([path])
        assert caught.value.message == message
