"""The fields that `profile set` is given."""

import pytest

from svcctl.errors import UsageError
from svcctl.profiles.assignments import ask_missing, in_arguments, in_text

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a secret on the command line": "api_secret is a secret, and other users can see command lines",
    "not a field": "'base_url' is not of the form FIELD=VALUE",
    "base_url": "that cannot be used: it must begin with https:// or http://, as in https://api.example.com",
    "an answer that is missing": "no {key} yet: run the same command to be asked again",
}
HINTS = {
    "base_url": "base_url is needed: it is the URL of the service (Ctrl-C to stop)",
}


def no_secret(key: str) -> str:
    raise AssertionError(f"{key} was asked for")


def test_a_secret_is_never_an_argument() -> None:
    words = ["base_url=https://a", "api_secret=-", "token=", "api_secret_file=x=y"]
    assert in_arguments(words, lambda key: f"the {key}") == {
        "base_url": "https://a",
        "api_secret": "the api_secret",
        "token": "",
        "api_secret_file": "x=y",
    }
    with pytest.raises(UsageError) as caught:
        in_arguments(["api_secret=hunter2"], no_secret)
    assert caught.value.message == WORDS["a secret on the command line"]


def test_no_secret_is_asked_for_before_all_words_are_right() -> None:
    with pytest.raises(UsageError) as caught:
        in_arguments(["api_secret=-", "base_url"], no_secret)
    assert caught.value.message == WORDS["not a field"]


@pytest.mark.parametrize(
    "text",
    [
        "api_key: 0123456701234567\ntime_zone: +2\nretries: 3\ntimeout: 1m\nheaders: {apikey: no}\ntoken: ~\n",
        "api_key: '0123456701234567'\ntime_zone: '+2'\nretries: '3'\ntimeout: '1m'\n"
        "headers:\n  apikey: 'no'\ntoken: ''\n",
        '{"api_key": "0123456701234567", "time_zone": "+2", "retries": 3, "timeout": "1m", '
        '"headers": {"apikey": "no"}, "token": null}',
    ],
)
def test_yaml_and_json_have_the_texts_that_are_written(text: str) -> None:
    assert in_text(text, "f.yaml") == {
        "api_key": "0123456701234567",
        "time_zone": "+2",
        "retries": "3",
        "timeout": "1m",
        "headers.apikey": "no",
        "token": "",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("token: hunter2\ntoken: hunter3\n", "f.yaml, line 2: key 'token' appears twice, first in line 1"),
        ("token: [hunter2]\n", "f.yaml, line 1: 'token' must be a single value"),
        ("headers:\n  sign: {hunter2: 3}\n", "f.yaml, line 2: 'headers.sign' must be a single value"),
        ("retries: 3\ntoken: !hunter2\n", "f.yaml, line 2: a value begins with '!', which YAML takes for a tag"),
        ("retries: 3\ntoken: *hunter2\n", "f.yaml, line 2: not YAML: found an alias without its anchor (column 8)"),
        ("token: 'hunter2\n", "f.yaml, line 2: not YAML: found unexpected end of stream (column 1)"),
        ("retries: 3\n1: hunter2\n? [hunter2]\n", "f.yaml, line 3: a key must be text"),
        ("{", "f.yaml, line 1: not YAML: expected the node content, but found '<stream end>' (column 2)"),
        ("hunter2", "f.yaml has no fields of a profile"),
        ("- hunter2\n- b\n", "f.yaml has no fields of a profile"),
    ],
)
def test_yaml_that_cannot_be_used_is_refused_with_its_line_and_without_a_value(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        in_text(text, "f.yaml")
    assert (caught.value.message, "hunter" in str(caught.value.hint)) == (message, False)


class Person:
    """Types the given answers in turn, and remembers the prompts; those of secrets are marked."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.prompts: list[str] = []
        self.notes: list[str] = []

    def ask(self, what: str, *, hidden: bool) -> str:
        self.prompts.append(what + " (hidden)" * hidden)
        return self.answers.pop(0)


def test_a_person_types_what_a_connection_needs() -> None:
    person = Person("api.example.com", "", "https://api.example.com/", "", "KEY", "SECRET")
    assert ask_missing({}, {}, person.ask, person.notes.append) == {
        "base_url": "https://api.example.com",
        "auth": "signature",
        "api_key": "KEY",
        "api_secret": "SECRET",
    }
    assert person.prompts == [
        *("base_url (https://…)",) * 3,
        "auth (signature, token or jwt; default signature)",
        "api_key (API key of the domain)",
        "api_secret (API secret) (hidden)",
    ]
    assert person.notes == [
        WORDS["base_url"],
        HINTS["base_url"],
    ]


@pytest.mark.parametrize(
    ("stored", "changes", "prompts"),
    [
        ({"base_url": "https://a", "api_key": "k", "api_secret_command": "c"}, {}, []),
        ({"base_url": "https://a", "token": "t"}, {}, []),
        ({"socket": "/s", "auth": "jwt"}, {}, ["token (bearer token or JWT) (hidden)"]),
        ({"base_url": "https://a"}, {"api_key": "k"}, ["api_secret (API secret) (hidden)"]),
    ],
)
def test_only_what_is_missing_is_asked_for(stored: dict[str, str], changes: dict[str, str], prompts: list[str]) -> None:
    person = Person("typed")
    ask_missing(stored, changes, person.ask, person.notes.append)
    assert person.prompts == prompts
    if prompts:
        key = prompts[0].split()[0]
        person = Person("")
        assert ask_missing(stored, changes, person.ask, person.notes.append) == {}
        assert person.notes == [WORDS["an answer that is missing"].format(key=key)]
