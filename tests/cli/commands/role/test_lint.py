"""`svcctl role lint`: findings with their file and line."""

from __future__ import annotations

import json
from pathlib import Path

from support.reseller import Reseller

from svcctl.cli.commands.role import FINDINGS
from svcctl.cli.inputs.role_files import Located


def test_lint_goes_on_past_a_file_that_it_cannot_read_and_says_which_files_are_clean(
    reseller: Reseller, file: Path, tmp_path: Path
) -> None:
    twice, empty, torn = tmp_path / "twice.yaml", tmp_path / "empty.yaml", tmp_path / "torn.yaml"
    twice.write_text("- name: A\n  policies: Search\n- name: A\n")
    empty.write_text("")
    torn.write_text("name: [\n")
    absent = tmp_path / "absent.yaml"
    done = reseller("role", "lint", *map(str, (twice, file, empty, torn, absent)), "-f", "ndjson")
    assert [(row["file"], row["line"], row["message"]) for row in map(json.loads, done.stdout.splitlines())] == [
        (str(twice), 3, f"role 'A' appears twice, first in {twice}, line 1"),
        (str(empty), None, "it contains no role"),
        (str(torn), 2, "not YAML: expected the node content, but found '<stream end>' (column 1)"),
        (str(absent), None, f"roles cannot be read from {absent}: No such file or directory"),
    ]
    assert (done.code, str(file) in done.stderr, f"{twice}, {empty}, {torn}, {absent}" in done.stderr) == (
        2,
        False,
        True,
    )
    table = reseller("role", "lint", str(file), str(empty), "-f", "table").stdout
    assert " ".join(table.split()) == f"{empty}: error: it contains no role {file}: 2 roles, no findings"
    clean = reseller("role", "lint", str(file), "-f", "table")
    assert (clean.code, clean.stdout, clean.stderr) == (0, f"{file}: 2 roles, no findings\n", "")


def test_lint_prints_the_place_of_each_finding_and_exits_2_for_errors(reseller: Reseller, file: Path) -> None:
    sound = reseller("role", "lint", str(file), "-f", "csv")
    assert (sound.code, sound.stdout, sound.stderr, sound.sent) == (0, "file,line,role,level,rule,message\n", "", [])
    file.write_text("name: Everything\n---\nname: Odd\npolicies: '*'\napplications: []\nresourceIds: {t: [x]}\n")
    odd = reseller("role", "lint", str(file), "-f", "ndjson")
    assert [json.loads(line) for line in odd.stdout.splitlines()] == [
        {
            "file": str(file),
            "line": 1,
            "role": "Everything",
            "level": "warning",
            "rule": 1,
            "message": "only a name: the role grants all policies, all applications and all resources",
        },
        {
            "file": str(file),
            "line": 6,
            "role": "Odd",
            "level": "error",
            "rule": 8,
            "message": "resourceIds.t: 'x' is not an integer",
        },
        {
            "file": str(file),
            "line": 4,
            "role": "Odd",
            "level": "warning",
            "rule": 2,
            "message": "'*' grants all policies of the domain, including future ones",
        },
    ]
    assert (odd.code, str(file) in odd.stderr) == (2, True)


def test_nothing_of_a_finding_about_a_role_is_cut() -> None:
    assert FINDINGS.paragraph is not None
    message = "only a name: the role grants all policies, all applications and all resources"
    assert FINDINGS.paragraph(Located("ns.yaml", 1, "Everything", "warning", 1, message), 60) == (
        "ns.yaml, line 1, role 'Everything': warning: only a name:\n"
        "    the role grants all policies, all applications and all\n"
        "    resources (rule 1)"
    )
