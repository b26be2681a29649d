"""The entries of a text file, wherever the blocks are cut in which it is read."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.loads import UNLIMITED

from svcctl.service.loading import lines
from svcctl.service.loading.decompression import Source
from svcctl.service.loading.skips import Skip, Tally


def entries(path: Path, continuation: str, block_size: int) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for batch in lines.batches(Source(path, path.name), continuation, Tally(), UNLIMITED, block_size):
        found += zip(batch["number"].to_pylist(), batch["line"].to_pylist(), strict=True)
    return found


def expected(text: str, continues: str) -> list[tuple[int, str]]:
    """The same, line by line."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        if found and continues and line.startswith(continues):
            found[-1] = found[-1][0], f"{found[-1][1]}\n{line}"
        else:
            found.append((number, line))
    return [(number, line) for number, line in found if line]


@given(
    st.lists(st.sampled_from(["a", "b b", " c", " ", "", "é"]), max_size=20).map("\n".join),
    st.sampled_from(["", " "]),
    st.sampled_from(["", "\n"]),
    st.integers(1, 12),
)
@settings(max_examples=80)
def test_entries_are_the_same_whatever_the_size_of_a_block(
    text: str, continues: str, end: str, block_size: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "a.log"
        path.write_text(text + end, encoding="utf-8")
        assert entries(path, continues, block_size) == expected(text + end, continues)


def test_an_entry_ends_at_its_largest_size(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("x\n" + " y\n" * (lines.MAX_ENTRY_BYTES // 2 + 10), encoding="utf-8")
    found = entries(path, " ", 1 << 16)
    assert sum(text.count("y") for _, text in found) == lines.MAX_ENTRY_BYTES // 2 + 10
    assert max(len(text) for _, text in found) <= 2 * lines.MAX_ENTRY_BYTES


def test_a_line_that_is_too_long_is_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("\ufeffa\n" + "x" * 11 + "\nb\n" + "y" * 10 + "\n" + "z" * 99, encoding="utf-8")
    for block_size in (1, 5, 12, 1 << 16):
        tally = Tally()
        found = [
            text
            for batch in lines.batches(Source(path, path.name), "", tally, UNLIMITED, block_size, longest=10)
            for text in batch["line"].to_pylist()
        ]
        assert found == ["a", "b", "y" * 10]
        assert tally.findings == {Skip.LONG: (2, 2, None, "")}


def test_a_line_has_no_returns_at_its_end_and_no_mark_at_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes("\ufeffa\r\r\n\ufeffb\r\n1%\r2%\n\ufeff\xe9\n".encode())
    for block_size in (1, 5, 12, 1 << 16):
        assert entries(path, "", block_size) == [(1, "a"), (2, "b"), (3, "1%\r2%"), (4, "\xe9")]
