"""Prints the size of the project and of its vocabulary. Nothing here fails: the figures are there to be watched.

.ci/check prints them at its end.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.naming import ROOT, bare_constants, hard_words, shared_class_names
from system.test_architecture import TESTS, arrows, modules

PROJECT = TESTS.parent
MOST_ROOMS = 8
"""How many of the largest folders are named."""


def figures() -> Iterator[tuple[str, str]]:
    """Each figure's name and value."""
    for name, root in (("package", ROOT), ("tests", TESTS)):
        paths = list(root.rglob("*.py"))
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
        yield name, f"{lines:,} lines in {len(paths)} modules"
    folders = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules().values())
    yield "largest folders", ", ".join(f"{name} {count}" for name, count in folders.most_common(MOST_ROOMS))
    rooms = arrows(lambda name: name.partition(".")[0])
    yield "arrows", f"{sum(map(len, rooms.values()))} between {len(rooms)} rooms"
    guide = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows, files = guide.count("\n| "), len(set(re.findall(r"`[\w./]+\.(?:py|lark|txt)`", guide)))
    yield "CONTRIBUTING.md", f"{len(guide.split()):,} words, {rows} rows, {files} files named"
    yield "class names that several modules define", str(len(shared_class_names()))
    yield "constants without a subject", str(sum(bare_constants().values()))
    yield "hard words", ", ".join(f"{word} {count}" for word, count in hard_words().items())


def main() -> None:
    for name, value in figures():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
