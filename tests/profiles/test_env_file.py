"""Files of NAME=VALUE lines: they mean what they mean to a shell, or are refused with the line."""

import subprocess
from pathlib import Path

import pytest

from svcctl.errors import UsageError
from svcctl.profiles.assignments import in_text

READ = [
    ("abc", "abc"),
    ("abc # key of ann", "abc"),
    ("abc\t#key", "abc"),
    ("abc  ", "abc"),
    ("a#b", "a#b"),
    ("#abc", "#abc"),
    ("", ""),
    ("  ", ""),
    (" # nothing", ""),
    ("''", ""),
    ('""', ""),
    ("0123", "0123"),
    ("a=b==", "a=b=="),
    ("'a b # $c `d` \"e\\'", 'a b # $c `d` "e\\'),
    ('"a b # c" # d', "a b # c"),
    (r'"a\"b\\c\$d\`e\n\t"', r'a"b\c$d`e\n\t'),
    (r"a\ b\#\$c\\", r"a b#$c\\"[:-1]),
    ("'a'\"b\"c#d", "abc#d"),
    ("p*?[]{}!%^@,:+-/~", "p*?[]{}!%^@,:+-/~"),
    ("ärger", "ärger"),
    ("a~/b", "a~/b"),
    ("'~/b'", "~/b"),
    ('~"/b"', "~/b"),
]


@pytest.mark.parametrize(("written", "value"), READ)
@pytest.mark.parametrize("line", ["socket={}", "export socket={}", "  export \tsocket={}\r"])
def test_a_value_is_the_one_that_a_shell_reads(written: str, value: str, line: str) -> None:
    assert in_text(f"# first\n\n{line.format(written)}\nretries=3\n", "f.env") == {"socket": value, "retries": "3"}


def test_the_expected_values_are_those_of_a_shell(tmp_path: Path) -> None:
    script = "".join(f"v={written}\nprintf '%s\\0' \"$v\"\n" for written, _ in READ)
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True, env={"HOME": "/h"})
    assert done.stdout.split("\0")[:-1] == [value for _, value in READ]


def test_a_home_directory_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    text = "ca_bundle=~/ca.pem\ntoken_file=~ # mine\nsocket=~nobody-of-this-name/s\n"
    assert in_text(text, "f.env") == {
        "ca_bundle": "/home/ann/ca.pem",
        "token_file": "/home/ann",
        "socket": "~nobody-of-this-name/s",
    }


BLANKS = "there are blanks around the ="
REPLACED = "a shell replaces text that begins with $ or `"
OPEN = "a quote is not closed"
FOLLOWS = "a text follows the value"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("token = hunter2", BLANKS),
        ("token =hunter2", BLANKS),
        ("token= hunter2", BLANKS),
        ("token=\thunter2", BLANKS),
        ("token= 'hunter2'", BLANKS),
        ("token =", BLANKS),
        ("token=$HUNTER2", REPLACED),
        ("token=${HUNTER2}", REPLACED),
        ("token=hunter$(2)", REPLACED),
        ("token=hunter`2`", REPLACED),
        ('token="hunter$x2"', REPLACED),
        ('token="hunter`2`"', REPLACED),
        ("token=$'hunter2'", REPLACED),
        ("token='hunter2", OPEN),
        ('token="hunter2', OPEN),
        ('token="hunter2\\"', OPEN),
        ("token='hunter'2'", OPEN),
        ("token=hunter2\\", "the line ends in a backslash"),
        ("token=hunter 2", FOLLOWS),
        ("token='hunter' '2'", FOLLOWS),
        ("token='' hunter2", FOLLOWS),
        *((f"token=hunter{mark}2", f"{mark} means something else to a shell") for mark in ";&|<>()"),
    ],
)
def test_a_line_that_a_shell_reads_differently_is_refused(line: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        in_text(f"# first\nretries=3\n{line}\n", "f.env")
    assert caught.value.message == f"f.env, line 3: token: {problem}"
    assert caught.value.hint == "write NAME=VALUE without blanks, or NAME='VALUE'"


@pytest.mark.parametrize("line", ["hunter2", "export TOKEN", "token: hunter2", "token+=hunter2", "set -a", "1=hunter2"])
def test_a_line_that_assigns_nothing_is_refused(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        in_text(f"retries=3\n{line}\n", "f.env")
    assert caught.value.message == "f.env, line 2: not of the form NAME=VALUE"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("token=a\ntoken=b\n", "token"),
        ("token=a\nexport SVCCTL_TOKEN=a\n", "SVCCTL_TOKEN"),
        ("token: a\nSVCCTL_TOKEN: b\n", "SVCCTL_TOKEN"),
    ],
)
def test_a_field_that_is_given_twice_is_refused(text: str, key: str) -> None:
    with pytest.raises(UsageError) as caught:
        in_text(text, "f.env")
    assert (caught.value.message, caught.value.hint) == (f"f.env, line 2: {key} is given twice", "keep one of them")
