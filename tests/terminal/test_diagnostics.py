"""What stderr says, line by line, and the exit code of every way to end."""

import io
import pickle
from collections.abc import Iterator

import pytest

from svcctl import errors
from svcctl.terminal.diagnostics import MAX_MESSAGE_CHARS, Diagnostics, Reported


def report(error: BaseException) -> tuple[int, str]:
    stream = io.StringIO()
    return Diagnostics(stream).report(error), stream.getvalue()


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (errors.SvcctlError("odd"), 1, "svcctl: error: odd\n"),
        (
            errors.ServiceError("no", code=12, cid="ab", hint="do this"),
            1,
            "svcctl: error: no (code 12, cid ab)\nhint: do this\n",
        ),
        (errors.UsageError("bad"), 2, "svcctl: error: bad\n"),
        (errors.ProfileError("bad"), 2, "svcctl: error: bad\n"),
        (
            errors.MissingExtra("the local service", "service"),
            2,
            "svcctl: error: the local service needs packages that are not installed\n"
            "hint: install them with: pip install 'svcctl[service]' (in a clone: pip install '.[service]')\n",
        ),
        (
            errors.CredentialsError("no", code=401),
            3,
            "svcctl: error: no (code 401)\n",
        ),
        (errors.NotFound("no"), 4, "svcctl: error: no\n"),
        (errors.Conflict("no"), 5, "svcctl: error: no\n"),
        (errors.Unavailable("down"), 6, "svcctl: error: down\n"),
        (errors.IncompleteResult("cut"), 7, "svcctl: error: cut\n"),
        (errors.EmptyResult("none"), 8, "svcctl: error: none\n"),
        (errors.Locked("busy"), 9, "svcctl: error: busy\n"),
        (KeyboardInterrupt(), 130, "svcctl: interrupted\n"),
        (errors.Terminated(), 143, "svcctl: ended by SIGTERM\n"),
        (errors.Declined(), 130, "svcctl: nothing was done\n"),
        (errors.ReaderClosed(), 141, ""),
        (errors.PagerLeft(), 0, ""),
        (Reported(5), 5, ""),
        (
            ZeroDivisionError("x"),
            1,
            "svcctl: error: ZeroDivisionError: x\nhint: this is a defect in svcctl; --verbose shows where\n",
        ),
    ],
)
def test_every_ending_has_its_words_and_its_code(error: BaseException, code: int, text: str) -> None:
    assert report(error) == (code, text)


@pytest.mark.parametrize(
    ("hint", "notes", "said"),
    [
        (None, [], "hint: advice\n"),
        ("hint", [], "hint: hint\n"),
        ("hint", ["note", "other"], "hint: hint; note; other\n"),
        (None, ["note"], "hint: advice; note\n"),
    ],
)
def test_an_error_without_a_hint_gets_advice_and_notes_follow_both(
    hint: str | None, notes: list[str], said: str
) -> None:
    diagnostics = Diagnostics(io.StringIO())
    diagnostics.advice = lambda error: "advice"
    error = errors.Unavailable("down", hint=hint)
    for note in notes:
        error.add_note(note)
    diagnostics.report(error)
    assert diagnostics.stream.getvalue() == f"svcctl: error: down\n{said}"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (errors.ServiceError("no"), ""),
        (errors.ServiceError("no", hint="do this"), "hint: do this\n"),
        (
            errors.Unavailable("down", hint="check whether it was done"),
            "hint: run the same command again, which is safe\n",
        ),
    ],
)
def test_what_can_be_repeated_asks_for_no_check_of_what_was_done_and_what_is_refused_is_not_repeated(
    error: errors.SvcctlError, hint: str
) -> None:
    error.subject = errors.ErrorSubject("job", "a", None, repeats=True)
    assert report(error)[1] == f"svcctl: error: job 'a': {error.message}\n{hint}"


def test_an_error_that_is_said_in_other_words_keeps_its_kind_its_fields_and_its_notes() -> None:
    first = errors.ServiceError("refused", code=106, cid="c9", hint="ask")
    first.add_note("or wait")
    second = first.saying("window 1: refused")
    assert (type(second), str(second), second.message) == (errors.ServiceError, *["window 1: refused"] * 2)
    assert (second.code, second.cid, second.hint, second.__notes__) == (106, "c9", "ask", ["or wait"])
    assert (str(first), first.message) == ("refused", "refused")


def test_an_error_can_have_the_advice_of_its_cause() -> None:
    cause = errors.NotFound("no", hint="ask", reason="no-job", data={"job": "j"})
    error = errors.IncompleteResult("cut", rows=3).advised_by(cause)
    assert (error.message, error.rows) == ("cut", 3)
    assert (error.hint, error.reason, error.data) == ("ask", "no-job", {"job": "j"})


def test_a_place_in_the_query_is_shown_with_a_caret() -> None:
    error = errors.ServiceError("unexpected 'wher'", place=errors.QueryPosition(2, 8), query="from a\nselect wher")
    assert report(error)[1] == ("svcctl: error: unexpected 'wher'\n  select wher\n         ^\n")


def test_a_place_far_to_the_right_is_shown_in_part() -> None:
    error = errors.ServiceError("odd", place=errors.QueryPosition(1, 301), query="x" * 300 + "!" + "y" * 300)
    lines = report(error)[1].split("\n")
    assert lines[1] == "  " + "x" * 60 + "!" + "y" * 39
    assert lines[2] == " " * 62 + "^"


def test_the_message_of_a_service_is_made_visible_on_one_line() -> None:
    assert report(errors.ServiceError("a\nb\x1b[2J"))[1] == "svcctl: error: a\\nb\\x1b[2J\n"


def test_no_message_has_the_password_of_a_url() -> None:
    stream, url = io.StringIO(), "https://user:word@host"
    diagnostics = Diagnostics(stream, verbose=True)
    for tell in (diagnostics.note, diagnostics.warning, diagnostics.detail, diagnostics.done, diagnostics.prompt):
        tell(f"{url} is there")
    for error in (errors.UsageError(f"no {url}", hint=f"see {url}"), ValueError(url)):
        diagnostics.report(error)
    diagnostics.report(errors.UsageError("x" * (MAX_MESSAGE_CHARS - 14) + url))  # cut within the password
    assert "https://****@host is there" in stream.getvalue()
    assert "wor" not in stream.getvalue()


def test_each_reports_a_failure_as_it_comes_and_continues_with_the_next_name() -> None:
    stream = io.StringIO()

    def act(name: str) -> str:
        if name == "a":
            return "done"
        raise errors.NotFound(f"no {name}") if name == "b" else errors.Conflict(f"{name} is stopped")

    found = Diagnostics(stream).for_each("cab", act)
    assert next(found) == "done"
    assert stream.getvalue() == "svcctl: error: c is stopped\n"
    with pytest.raises(Reported) as caught:
        next(found)
    assert stream.getvalue() == "svcctl: error: c is stopped\nsvcctl: error: no b\n"
    assert caught.value.code == 5


def test_quiet_silences_notes_and_never_errors() -> None:
    stream = io.StringIO()
    diagnostics = Diagnostics(stream, quiet=True)
    diagnostics.note("something")
    diagnostics.report(errors.UsageError("bad"))
    assert stream.getvalue() == "svcctl: error: bad\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_message_is_in_lines_on_a_terminal_and_one_line_in_a_pipe() -> None:
    command = errors.CommandLine("svcctl query 'from auth.all'")
    error = errors.UsageError(f"one {'word ' * 20}more", hint=errors.Advice(f"use {'this ' * 14}or: ", command))
    for stream, lines in ((Terminal(), 4), (io.StringIO(), 2)):
        Diagnostics(stream, width=80).report(error)
        told = stream.getvalue().splitlines()
        assert (len(told), max(map(len, told)) <= 80) == (lines, lines == 4)
        assert sum("svcctl query 'from auth.all'" in line for line in told) == 1


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        (("do this: ", errors.CommandLine("a b c d e"), "; or that"), ["do this:", "a b c d e; or", "that"]),
        (("do (", errors.CommandLine("x y"), ") now"), ["do (x y)", "now"]),
        (("do: ", errors.CommandLine("echo 'a b' | wc -l"), " at once"), ["do:", "echo 'a b' | wc -l", "at once"]),
        (("do: ", errors.CommandLine("tr \x1b x")), ["do:", "tr \\x1b x"]),
    ],
)
def test_a_command_in_advice_is_never_broken(parts: tuple[str, ...], lines: list[str]) -> None:
    stream = Terminal()
    Diagnostics(stream, width=18).note(errors.Advice(*parts))
    assert [line.strip() for line in stream.getvalue().removeprefix("svcctl: ").splitlines()] == lines


def test_hints_are_joined_as_sentences_and_keep_their_commands() -> None:
    command = errors.CommandLine("svcctl a")
    advice = errors.advice_of("did you mean 'a'?", errors.Advice("use: ", command), None, "", "see b", "see b")
    assert advice == "did you mean 'a'? use: svcctl a; see b"
    assert advice is not None
    assert pickle.loads(pickle.dumps(advice)).commands == errors.Advice("so: ", advice).commands == (command,)
    assert errors.advice_of(None, "") is None


def every_class(kind: type[errors.SvcctlError]) -> Iterator[type[errors.SvcctlError]]:
    yield kind
    for narrower in kind.__subclasses__():
        if narrower.__module__ == errors.__name__:
            yield from every_class(narrower)


@pytest.mark.parametrize("kind", [*every_class(errors.SvcctlError)])
def test_an_error_of_another_process_is_the_same_error(kind: type[errors.SvcctlError]) -> None:
    error = errors.MissingExtra("Arrow", "parquet") if kind is errors.MissingExtra else kind("no", hint="so")
    copy = pickle.loads(pickle.dumps(error.advised_by(error)))
    assert (type(copy), str(copy), vars(copy)) == (kind, str(error), vars(error))
    assert errors.commands_in(copy.hint) == errors.commands_in(error.hint or "")
