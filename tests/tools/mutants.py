"""Seeded mutations of the package, each run against its nearest tests: a change that no test notices needs one.

A mutation flips a comparison, a condition, a Boolean, `and` and `or`, adds 1 to an integer, or returns None. Code
within functions, classes and lambdas is mutated; tables, texts, annotations and assertions are not. A room is a folder
of the package. The draw takes each room in proportion to its code, and a later change of the code hardly changes it.

    .venv/bin/python tests/tools/mutants.py                           (300 mutations; an hour or more)
    .venv/bin/python tests/tools/mutants.py --rooms dates io --count 20 --seed 3
    .venv/bin/python tests/tools/mutants.py --list                    (prints the draw)
    .venv/bin/python tests/tools/mutants.py --again report.tsv        (only those that no test caught in that report)

A line is printed for each mutation: outcome, room, file and line, change, and the test that failed. A mutation is
caught if a fast test fails with it. At the end the same tests run without mutations: a test that fails then has caught
nothing. The nearest tests are those with the module's name, those that import it, those of its folder, and those of the
modules that import it. A mutation times out if its tests pass until their time is over.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue

PROJECT = Path(__file__).parents[2]
STAGES = ((0, 100), (1, 150))
"""The greatest distance of the tests of each stage, and the seconds that they may take."""
MOST_FILES = 20
"""Files of tests that a stage runs at most, the nearest ones."""
TEST_SECONDS = 60
"""A test that takes longer fails: a mutation made an endless loop."""
NO_TEST = "(the run ended without a failed test)"
FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SLOW_TESTS = {
    "svcctl/storage/hdfs.py": "hdfs",
    "svcctl/service/jobs/leases.py": "leases",
    "svcctl/service/state/postgresql.py": "postgresql",
}
"""Modules that only slow tests run, with servers that pip cannot install: what the names of these tests contain."""
SPARK = "svcctl/service/engines/spark"
"""The only modules whose mutations are run with the tests on Spark, which take long."""
LENGTHS = "zip only asserts that its arguments are equally long, which they always are"
EQUIVALENT: dict[tuple[str, str], str] = {
    ("svcctl/service/language/expressions.py", "Scope._membership: True -> False"): LENGTHS,
    ("svcctl/service/language/translation.py", "_in_order: True -> False"): LENGTHS,
    ("svcctl/terminal/layout.py", "_fit: True -> False"): LENGTHS,
    (
        "svcctl/api/formats/delimited.py",
        "DelimitedDialect._usual: row if self._skeleton(row) == shape else b'' -> None",
    ): "without a usual row, the skeletons of rows are compared, with the same result",
    ("svcctl/cli/inputs/yaml_files.py", "fill.walk: value -> None"): (
        "the values in a file are texts, lists and mappings, and otherwise None"
    ),
    ("svcctl/service/state/schema.py", "JsonText: True -> False"): (
        "SQLAlchemy compiles an equal statement each time instead of once"
    ),
    ("svcctl/service/queries/continuous.py", "Steps.__init__: 0 -> 1 #2"): (
        "it is compared with milliseconds since 1970, for which 1 is as long ago as 0"
    ),
    ("svcctl/exports/workers/split.py", "Split.write: max(inside) >= end -> max(inside) > end"): (
        "a row is longer than the date that it begins with, so it never equals the end of a window"
    ),
    ("svcctl/service/process.py", "reset: 384 -> 385"): (
        "the file is empty and in a directory that only its owner can enter"
    ),
}
"""Mutations that no test can notice, by file and change: why the package does the same with each."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file: `source[start:end]`, in bytes, becomes `new`."""

    path: Path
    name: str
    """The class and function, what was there, what is there now, and a number if the function has several of these."""
    line: int
    start: int
    end: int
    new: bytes

    @property
    def room(self) -> str:
        """The folder in the package; a folder of the service is a room of its own."""
        parts = self.path.parts[1:-1]
        return "/".join(parts[: 2 if parts[:1] == ("service",) else 1]) or "top level"

    def rank(self, seed: int) -> str:
        """The place in the draw, which only the seed and this mutation decide."""
        return hashlib.sha256(f"{seed} {self.path} {self.name}".encode()).hexdigest()

    def applied(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.new + source[self.end :]


def mutants() -> Iterator[Mutant]:
    """All mutations of the package that are valid Python."""
    for file in sorted((PROJECT / "svcctl").rglob("*.py")):
        path, source = file.relative_to(PROJECT), file.read_bytes()
        begins = [0]
        for line in source.splitlines(keepends=True):
            begins.append(begins[-1] + len(line))
        names = Counter[str]()
        for where, old, new in changes(ast.parse(source), []):
            assert old.end_lineno is not None
            assert old.end_col_offset is not None
            text = ast.unparse(new)
            name = f"{'.'.join(where)}: {ast.unparse(old)} -> {text}"
            names[name] += 1
            start = begins[old.lineno - 1] + old.col_offset
            end = begins[old.end_lineno - 1] + old.end_col_offset
            number = f" #{names[name]}" if names[name] > 1 else ""
            yield Mutant(path, name + number, old.lineno, start, end, f"({text})".encode())


def changes(node: ast.AST, where: list[str]) -> Iterator[tuple[list[str], ast.expr, ast.expr]]:
    """Each change within a node: the names of its classes and functions, what is there, and what is put there."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            parts: list[ast.AST] = [*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body]
            where = [*where, name]
        case ast.ClassDef(name=name, body=body):
            parts, where = [*body], [*where, name]
        case ast.Lambda(args=arguments, body=body):
            parts, where = [*arguments.defaults, body], where or ["lambda"]
        case ast.AnnAssign(value=value):
            parts = [value] if value else []
        case (
            ast.Assert() | ast.JoinedStr()
        ):  # asserts are for mypy; Python 3.11 does not know places within an f-string
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case _:
            parts = [*ast.iter_child_nodes(node)]
            if where:
                yield from ((where, old, new) for old, new in changes_of_node(node))
    for part in parts:
        yield from changes(part, where)


def changes_of_node(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The changes of this node itself."""
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


def module_name(path: Path) -> str:
    """The dotted name of a file of the project."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


@cache
def imports() -> dict[Path, set[str]]:
    """The modules of the package that each of its files and each file of tests imports, also within functions."""
    files = [*PROJECT.glob("svcctl/**/*.py"), *PROJECT.glob("tests/**/test_*.py")]
    paths = [file.relative_to(PROJECT) for file in files]
    known = {module_name(path) for path in paths}
    imported: dict[Path, set[str]] = {path: set() for path in paths}
    for path in paths:
        for node in ast.walk(ast.parse((PROJECT / path).read_bytes())):
            match node:
                case ast.ImportFrom(module=str(source), names=names):
                    imported[path] |= {source, *(f"{source}.{alias.name}" for alias in names)} & known
                case ast.Import(names=names):
                    imported[path] |= {alias.name for alias in names} & known
    return imported


def own_tests(path: Path) -> set[Path]:
    """The files of tests that have the name of a module or are in a folder of its name, and importers in its folder."""
    folder, stem = Path("tests", *path.parts[1:-1]), path.stem
    if stem == "__init__":
        folder, stem = folder.parent, folder.name
    name = re.compile(rf"test_({re.escape(folder.name)}_|{re.escape(path.parent.name)}_)?{re.escape(stem)}(_.*)?\.py")
    return {
        test
        for test, modules in imports().items()
        if (test.parent in (folder, folder.parent) and name.fullmatch(test.name))
        or test.parent == folder / stem
        or (test.parent == folder and module_name(path) in modules)
    }


@cache
def near(path: Path) -> list[tuple[int, Path]]:
    """Files of tests, the nearest first: 0 are a module's own, 1 are others that run it."""
    folder, ranks = Path("tests", *path.parts[1:-1]), dict[Path, tuple[int, int]]()

    def add(tests: set[Path], rank: tuple[int, int]) -> None:
        for test in sorted(tests):
            ranks.setdefault(test, rank)

    def importers(of: set[Path]) -> set[Path]:
        names = {module_name(each) for each in of}
        return {file for file, modules in imports().items() if modules & names}

    add(own_tests(path) or own_tests(path.with_name("__init__.py")), (0, 0))
    around, seen = {path}, {path}
    for step in range(1, 4):
        around = {file for file in importers(around) if file.parts[0] == "tests" or file not in seen}
        tests = {file for file in around if file.parts[0] == "tests"}
        around -= tests
        seen |= around
        add(tests | {test for file in around for test in own_tests(file)}, (1, 2 * step))
        add({test for test in imports() if test.parent == folder}, (1, 2 * step + 1))
        folder = folder.parent
    order = sorted(
        ranks, key=lambda test: (ranks[test], -len(os.path.commonpath([test, Path("tests", *path.parts[1:])])))
    )
    return [(ranks[test][0], test) for test in order if "tools" not in test.parts]


@dataclass(frozen=True)
class Run:
    """How a run of tests ended: the identifiers of the tests that failed, and whether it took too long."""

    failed: list[str]
    late: bool


class Checkouts:
    """Copies of the project that mutations are written into, one for each worker, each with its own environment."""

    def __init__(self, directory: Path, count: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        self._time = iter(range(10**9, 2 * 10**9))
        for number in range(count):
            copy = directory / str(number)
            shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__"))
            make_environment(copy)
            self._free.put(copy)

    def run(self, stage: int, mutant: Mutant) -> Run:
        """Run the tests of a stage with a mutation."""
        tests = [str(test) for distance, test in near(mutant.path) if distance == STAGES[stage][0]][:MOST_FILES]
        checkout = self._free.get()
        path = checkout / mutant.path
        source, times = path.read_bytes(), (path.stat().st_atime, path.stat().st_mtime)
        try:
            path.write_bytes(mutant.applied(source))
            os.utime(path, (0, next(self._time)))  # bytecode is valid for one time and size of its source
            return run_tests(checkout, tests, STAGES[stage][1], "-x", *kind_of_tests(mutant))
        finally:
            path.write_bytes(source)
            os.utime(path, times)
            self._free.put(checkout)

    def failing(self, tests: list[str]) -> set[str]:
        """Those of the tests that fail without a mutation."""
        checkout = self._free.get()
        try:
            return set(run_tests(checkout, tests, 1800, "-m", "slow or not slow").failed)
        finally:
            self._free.put(checkout)


def kind_of_tests(mutant: Mutant) -> list[str]:
    """The options of pytest that choose which tests of a file may run with a mutation."""
    if word := SLOW_TESTS.get(str(mutant.path)):
        return ["-m", "slow or not slow", "-k", word]
    return [] if str(mutant.path).startswith(SPARK) else ["-k", "not spark and not sail"]


def make_environment(checkout: Path) -> None:
    """Make a virtual environment whose package is that of the checkout, and whose other packages are the project's."""
    venv.create(checkout / ".venv", symlinks=True)
    scripts = checkout / ".venv" / "bin"
    (packages,) = (checkout / ".venv").glob("lib/python*/site-packages")
    theirs = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "project.pth").write_text(f"{checkout}\n{theirs}\n", encoding="utf-8")
    for script in (PROJECT / ".venv" / "bin").iterdir():
        if script.name != "svcctl" and not (scripts / script.name).exists():
            (scripts / script.name).symlink_to(script)


def run_tests(checkout: Path, tests: list[str], seconds: float, *options: str) -> Run:
    """Run fast tests in a checkout. All processes that they start end with them."""
    if not tests:
        return Run([], late=False)
    pytest = [str(checkout / ".venv" / "bin" / "python"), "-m", "pytest", "-q", "-rfE", "-n", "0", "--tb=no"]
    ends = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", '"$@"; exit $?', "sh"]
    command = [*ends, *pytest, "-p", "no:cacheprovider", f"--timeout={TEST_SECONDS}", *options, *tests]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with tempfile.TemporaryDirectory(prefix="svcctl-mutant-") as directory:
        environment |= {"PATH": f"{checkout}/.venv/bin:{os.environ['PATH']}", "TMPDIR": directory}
        try:
            done = subprocess.run(
                command, cwd=checkout, env=environment, capture_output=True, timeout=seconds, check=False, text=True
            )
        except subprocess.TimeoutExpired:
            return Run([], late=True)
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return Run(failed or [NO_TEST] * (done.returncode not in (0, 5)), late=False)


def draw(options: argparse.Namespace) -> list[Mutant]:
    """The mutations that the options choose."""
    every = list(mutants())
    stale = EQUIVALENT.keys() - {(str(mutant.path), mutant.name) for mutant in every}
    assert not stale, f"no such mutations: {stale}"
    chosen: list[Mutant] = []
    for mutant in sorted(every, key=lambda each: each.rank(options.seed)):
        if options.rooms and mutant.room not in options.rooms:
            continue
        try:
            ast.parse(mutant.applied((PROJECT / mutant.path).read_bytes()))
        except SyntaxError:
            continue
        chosen.append(mutant)
        if len(chosen) == options.count:
            break
    if options.again:
        rows = [line.split("\t") for line in options.again.read_text(encoding="utf-8").splitlines()]
        again = {(row[2].rpartition(":")[0], row[3]) for row in rows if row[0] in ("survived", "timed out")}
        chosen = [mutant for mutant in chosen if (str(mutant.path), mutant.name) in again]
    return chosen


def print_mutant(outcome: str, mutant: Mutant, test: str = "") -> None:
    print(outcome, mutant.room, f"{mutant.path}:{mutant.line}", mutant.name, test, sep="\t", flush=True)


def outcomes(chosen: list[Mutant], workers: int) -> dict[Mutant, str]:
    """Run the mutations, and print what became of each."""
    ends = {mutant: "equivalent" for mutant in chosen if (str(mutant.path), mutant.name) in EQUIVALENT}
    caught: dict[Mutant, str] = {}
    with tempfile.TemporaryDirectory(prefix="svcctl-mutants-") as directory, ThreadPoolExecutor(workers) as pool:
        checkouts = Checkouts(Path(directory), workers)
        for stage in range(len(STAGES)):
            left = [mutant for mutant in chosen if mutant not in ends and mutant not in caught]
            runs = {pool.submit(checkouts.run, stage, mutant): mutant for mutant in left}
            for ended in as_completed(runs):
                mutant, run = runs[ended], ended.result()
                if run.failed:
                    caught[mutant] = run.failed[0]
                    print_mutant("caught", mutant, run.failed[0])
                elif stage == len(STAGES) - 1:
                    ends[mutant] = "timed out" if run.late else "survived"
                    print_mutant(ends[mutant], mutant)
                else:
                    print_mutant("passed", mutant)
        failing = checkouts.failing(sorted({*caught.values()} - {NO_TEST}))
    for mutant, test in caught.items():
        ends[mutant] = "survived" if test in failing else "caught"
        if test in failing:
            print_mutant("survived", mutant, f"{test} fails without it, too")
    return ends


def main() -> None:
    """Run seeded mutations and print which ones no test noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rooms", nargs="*", default=[], help="such as dates or service/jobs; all by default")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261125)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the draw and run nothing")
    parser.add_argument("--again", type=Path, metavar="REPORT", help="run those that no test caught in this report")
    options = parser.parse_args()
    chosen = draw(options)
    if options.list:
        for mutant in chosen:
            print_mutant("drawn", mutant)
        return
    ends = outcomes(chosen, options.workers)
    table = Counter((mutant.room, end) for mutant, end in ends.items())
    for room in [*sorted({mutant.room for mutant in chosen}), "total"]:
        count = {
            end: table[room, end] if room != "total" else Counter(ends.values())[end] for end in set(ends.values())
        }
        print(room, ", ".join(f"{number} {end}" for end, number in sorted(count.items()) if number), sep=": ")


if __name__ == "__main__":
    main()
