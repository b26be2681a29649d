"""Which changes of the code the tests notice: seeded mutations, each run against the fast tests of its room.

A mutation flips a comparison, a condition, a constant, `and` and `or`, or returns None. A room is a part of the package
with the tests that are about it. Two checkouts of the project are made, so that two mutations run at once:

    .venv/bin/python tests/tools/mutants.py                     (all rooms, 150 mutations; about 40 minutes)
    .venv/bin/python tests/tools/mutants.py dates --count 20 --seed 3

It prints a line for each mutation, and in the end how many of each room were caught. A mutation's name does not
say where the file is, so that it can be found again after a move.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

PROJECT = Path(__file__).parents[2]
ROOMS = {
    "api": ("svcctl/api", ["tests/api"]),
    "exports": ("svcctl/exports", ["tests/exports", "tests/cli/commands/export"]),
    "jobs": ("svcctl/service/jobs", ["tests/service/jobs"]),
    "language": ("svcctl/service/language", ["tests/service/language"]),
    "dates": ("svcctl/dates", ["tests/dates"]),
    "loading": ("svcctl/service/loading", ["tests/service/loading", "tests/cli/commands/service"]),
}
"""What is mutated, and the tests that must notice it."""
SECONDS = 900
"""A mutation whose tests take longer counts as caught: it made an endless loop."""
FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one file: `source[start:end]`, in bytes, becomes `new`."""

    room: str
    path: Path
    name: str
    """The class and function, what was there, and what is there now."""
    start: int
    end: int
    new: bytes


def mutants(room: str) -> Iterator[Mutant]:
    """All mutations of a room, in the order of its files."""
    for file in sorted((PROJECT / ROOMS[room][0]).rglob("*.py")):
        yield from _of_file(room, file.relative_to(PROJECT), file.read_bytes())


def _of_file(room: str, path: Path, source: bytes) -> Iterator[Mutant]:
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))

    def mutant(where: list[str], node: ast.expr, new: ast.expr) -> Mutant:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = begins[node.lineno - 1] + node.col_offset
        end = begins[node.end_lineno - 1] + node.end_col_offset
        text = f"({ast.unparse(new)})"
        return Mutant(room, path, f"{'.'.join(where)}: {ast.unparse(node)} -> {text}", start, end, text.encode())

    def walk(node: ast.AST, where: list[str]) -> Iterator[Mutant]:
        match node:
            case (
                ast.FunctionDef(name=name, body=body)
                | ast.AsyncFunctionDef(name=name, body=body)
                | ast.ClassDef(name=name, body=body)
            ):
                for part in body:
                    yield from walk(part, [*where, name])
            case ast.AnnAssign(value=value):
                if value is not None:
                    yield from walk(value, where)
            case _:
                if where:  # Tables at the top of a module are data.
                    yield from (mutant(where, old, new) for old, new in _changes(node))
                for child in ast.iter_child_nodes(node):
                    yield from walk(child, where)

    yield from walk(ast.parse(source), [])


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What can be changed of this node itself."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right):
            yield node, ast.Compare(left, [FLIPPED[type(op)]()], right)
        case ast.BoolOp(op=op, values=values):
            yield node, ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, operand
        case ast.Constant(value=bool() as value):
            yield node, ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield node, ast.Constant(value + 1)
        case ast.If(test=ast.Name() | ast.Attribute() | ast.Call() as test):
            yield test, ast.UnaryOp(ast.Not(), test)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield value, ast.Constant(None)


class Checkouts:
    """Copies of the project that mutations are written into, one for each worker."""

    def __init__(self, directory: Path, count: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            copy = directory / str(number)
            shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__"))
            self._free.put(copy)

    def pass_tests(self, room: str) -> bool:
        """Whether the room's fast tests pass as the code is."""
        checkout = self._free.get()
        try:
            return passes(checkout, ROOMS[room][1])
        finally:
            self._free.put(checkout)

    def caught(self, mutant: Mutant) -> bool:
        """Whether a test fails with this mutation."""
        checkout = self._free.get()
        path = checkout / mutant.path
        source = path.read_bytes()
        try:
            path.write_bytes(source[: mutant.start] + mutant.new + source[mutant.end :])
            return not (passes(checkout, near(mutant.path)) and passes(checkout, ROOMS[mutant.room][1]))
        finally:
            path.write_bytes(source)
            self._free.put(checkout)


def near(path: Path) -> list[str]:
    """The file of tests that a module has of its own: most mutations are caught there, in seconds."""
    return [str(Path("tests", *path.parts[1:-1], f"test_{path.name}"))]


def passes(checkout: Path, named: list[str]) -> bool:
    """Whether those of the named fast tests that there are pass in this checkout."""
    tests = [test for test in named if (checkout / test).exists()]
    if not tests:
        return True
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", "0", *tests]
    environment = os.environ | {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, timeout=SECONDS, check=False, text=True
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> None:
    """Run seeded mutations and print which ones no test noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), help=f"of {', '.join(ROOMS)}; all by default")
    parser.add_argument("--count", type=int, default=25, help="mutations of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    chosen = [
        mutant
        for room in options.rooms
        for mutant in random.Random(f"{options.seed} {room}").sample(
            sorted(mutants(room), key=lambda each: each.name), options.count
        )
    ]
    total, survived = Counter(mutant.room for mutant in chosen), Counter[str]()
    with (
        tempfile.TemporaryDirectory(prefix="svcctl-mutants-") as directory,
        ThreadPoolExecutor(options.workers) as pool,
    ):
        checkouts = Checkouts(Path(directory), options.workers)
        for room in options.rooms:
            assert checkouts.pass_tests(room), f"the tests of {room} fail without a mutation"
        for mutant, caught in zip(chosen, pool.map(checkouts.caught, chosen), strict=True):
            survived[mutant.room] += not caught
            print(f"{'caught' if caught else 'survived'}\t{mutant.room}\t{mutant.name}", flush=True)
    for room in options.rooms:
        print(f"{room}: {total[room] - survived[room]} of {total[room]} caught (seed {options.seed})")


if __name__ == "__main__":
    main()
