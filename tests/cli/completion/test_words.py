"""A marker takes words, or a function that reads them later, and loads nothing by itself."""

from __future__ import annotations

import subprocess
import sys

from svcctl.cli.completion.words import Completes, Word, date_formats


def test_words_are_given_or_read_from_their_table() -> None:
    meant = Word("table", "columns that fit the terminal")
    assert Completes(words=["csv", meant]).known() == (Word("csv"), meant)
    assert Completes(words=date_formats).known() == (Word("default"), Word("sql"), Word("iso"))
    assert Completes("jobs").known() == ()


def test_the_shared_options_load_none_of_the_tables_that_complete_them() -> None:
    code = "import sys, svcctl.cli.options; print(*sorted(name for name in sys.modules if name.startswith('svcctl')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded >= {"svcctl.cli.completion.words", "svcctl.cli.options"}
    assert (
        loaded
        & {
            "svcctl.api.destinations",
            "svcctl.dates.operators",
            "svcctl.dates.shorthand",
            "svcctl.cli.completion.places",
            "svcctl.profiles",
            "svcctl.terminal.formats",
        }
        == set()
    )
