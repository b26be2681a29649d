"""Paths to a member of JSON text, such as `a.b[0]` or `["a.b"][2]`.

A name without quotes ends at a dot or a bracket. A name in `["…"]` may contain dots, brackets and blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from svcctl.service.language.query_error import UnplacedError

JsonStep = str | int
"""One step of a path: the name of a member of an object, or the index of an item in a list, counted from 0."""

MAX_JSON_DEPTH = 32
"""The maximum depth of JSON in which a path is looked up, and the maximum number of steps in a path."""
_PLAIN = r"[^\s.\[\]\"'?*\\\x00-\x1f]+"
_JSON_STEP = re.compile(rf'(\.?)({_PLAIN})|\[([0-9]{{1,9}})\]|\["([^"\'?\\\x00-\x1f]+)"\]')
_EXAMPLE = 'a path is names and indices from 0, as in a.b[0] or ["a b"].c'


def json_path(text: str) -> tuple[JsonStep, ...]:
    """Parse a path into its steps. Raises UnplacedError for an invalid path. The error shows the invalid character."""
    steps: list[JsonStep] = []
    end = 0
    while end < len(text):
        match = _JSON_STEP.match(text, end)
        # every name without brackets, except the first, follows a dot
        if match is None or (match[2] and bool(match[1]) != bool(steps)):
            raise _path_error(text, end)
        end = match.end()
        steps.append(int(match[3]) if match[3] else match[2] or match[4])
    if not steps:
        raise UnplacedError("the path is empty", argument=1, hint=_EXAMPLE)
    if steps[0] == "$" and text[0] == "$" and len(steps) > 1:
        hint = f'write {text[1:].removeprefix(".")}; a member of the name $ is ["$"]'
        raise UnplacedError(f"a path does not begin with $: '{text}'", argument=1, hint=hint)
    if len(steps) > MAX_JSON_DEPTH:
        raise UnplacedError(f"a path has at most {MAX_JSON_DEPTH} steps, not {len(steps)}", argument=1)
    return tuple(steps)


def path_text(steps: Iterable[JsonStep]) -> str:
    """Write steps as the text of a path."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(_PLAIN, step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


def _path_error(text: str, index: int) -> UnplacedError:
    rest = text[index:]
    hint = _EXAMPLE
    if re.match(r"\[-[0-9]", rest):
        hint = "an index counts from 0, from the beginning of the list"
    elif re.match(r"\.?\*|\[\*", rest):
        hint = "a path leads to one value: it has no wildcards"
    elif re.match(r"\[['\"]", rest):
        hint = """a name in brackets is in double quotes, and has no " ' ? or \\"""
    return UnplacedError(
        f"'{text[:100]}' is not a path: unexpected '{rest[0]}' at character {index + 1}", argument=1, hint=hint
    )
