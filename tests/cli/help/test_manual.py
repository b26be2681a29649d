"""The manual pages, as man prints them."""

import os
import subprocess
from pathlib import Path

import pytest
from support.terminal import need
from support.tree import TREE

from svcctl.cli.commands import NOUNS
from svcctl.cli.help.manual import pages

PAGES = pages(TREE)


def test_svcctl_and_each_noun_have_a_page() -> None:
    assert list(PAGES) == ["svcctl.1", *(f"svcctl-{noun}.1" for noun in NOUNS)]


@pytest.mark.parametrize(
    ("noun", "titles"),
    [
        ("query", ["Range", "Output", "Rows", "Query", "Files", "Columns of files", "Run", "Job", "Other"]),
        ("export", ["Output", "Range", "Query", "Windows", "Run", "Other"]),
    ],
)
def test_the_manual_has_the_headings_of_the_help_page(noun: str, titles: list[str]) -> None:
    _, _, options = PAGES[f"svcctl-{noun}.1"].partition(".SH OPTIONS\n")
    assert [line for line in options.partition(".SH")[0].split("\n") if line.startswith(".SS")] == [
        f'.SS "{title}"' for title in titles
    ]


@pytest.mark.parametrize("name", PAGES)
def test_the_manual_is_read_by_man_and_its_examples_can_be_pasted(name: str, tmp_path: Path) -> None:
    need("man", "groff")
    path = tmp_path / name
    path.write_text(PAGES[name], encoding="utf-8")
    shown = subprocess.run(
        ["man", "--warnings", "-l", str(path)],
        env={"PATH": os.environ["PATH"], "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert shown.stderr == ""
    assert [line for line in shown.stdout.split("\n") if len(line) > 80] == []
    assert shown.stdout.startswith(f"{path.stem.upper()}(1)")
    assert "‐" not in shown.stdout.replace("‐\n", "")
    assert "’" not in shown.stdout
    assert ("'from auth.all" in shown.stdout) == ("'from auth.all" in PAGES[name].replace(r"\(aq", "'"))
