"""The names and the sentences of the package, counted."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import svcctl

ROOT = Path(svcctl.__file__).parent

QUANTITIES = {
    *("LONGEST", "SHORTEST", "MOST", "LEAST", "LARGEST", "SMALLEST", "NARROWEST", "FEW", "MANY", "ENOUGH", "LARGE"),
    *("PATIENCE", "PAUSE", "SILENCE", "GRACE", "SOON", "LATE", "QUIET", "BUSY", "AGO", "AHEAD", "SHORT", "LAG"),
    *("LIMIT", "SIZE", "LENGTH", "WIDTH", "NUMBER", "SECONDS", "GROWTH", "SHARE", "ROOM", "GAP", "SKEW"),
    *("BLOCK", "PIECE", "SLICE", "PART", "STEP", "SAMPLE", "STRETCH", "VECTOR"),
    *("WHOLE", "ALL", "ANY", "EVERY", "NONE", "NOTHING", "FIRST", "LAST", "OWN", "FULL", "SETTINGS"),
}
"""Names of constants that say neither whose value it is nor its unit."""

VAGUE_LOCALS = {"one", "each", "found", "given", "kept"}
"""Names of locals and parameters that say nothing about the value."""

WORDS = ("behind", "told", "tells", "anew", "beside", "whatever", "as it is", "as they are", "that is none")
"""Words that made sentences hard to read when they were used often."""
OPENINGS = ("What", "Who", "Of", "Which")
"""First words of sentences that name a thing by a clause."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Each module of the package by its dotted name below `svcctl`."""
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def shared_class_names() -> dict[str, int]:
    """The names of public classes that several modules define, and how many modules define each."""
    names = Counter(
        node.name
        for _, module in modules()
        for node in module.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return {name: count for name, count in sorted(names.items()) if count > 1}


def bare_constants() -> dict[str, int]:
    """The constants whose name is a quantity alone, and how many modules define each."""
    names = Counter(name.lstrip("_") for _, module in modules() for name in _assigned(module))
    return {name: count for name, count in sorted(names.items()) if name in QUANTITIES}


def vague_locals() -> dict[str, list[str]]:
    """The modules with locals or parameters of VAGUE_LOCALS, and their lines."""
    lines: dict[str, list[str]] = {}
    for name, module in modules():
        for node in ast.walk(module):
            match node:
                case ast.Name(id=local, ctx=ast.Store()) | ast.arg(arg=local) if local in VAGUE_LOCALS:
                    lines.setdefault(name, []).append(f"{node.lineno}: {local}")
    return lines


def _assigned(module: ast.Module) -> Iterator[str]:
    """The names that the top level of a module assigns."""
    for node in module.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def hard_words() -> dict[str, int]:
    """How often the prose of the package has each word of WORDS, and a sentence that begins with one of OPENINGS.

    Prose is the comments and strings of modules and the templates of help.
    """
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*")) if path.suffix in (".py", ".txt")
    )
    counts = {word: len(re.findall(rf"\b{word}\b", text)) for word in WORDS}
    openings = rf'(?:"""|# |\. |\.\n\s*|\n\n)(?:{"|".join(OPENINGS)}) \w'
    return counts | {f"{', '.join(OPENINGS)} at the beginning": len(re.findall(openings, text))}
