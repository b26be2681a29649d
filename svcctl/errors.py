"""Every error svcctl raises on purpose.

    SvcctlError
    ├── UsageError              what the caller typed or configured cannot be used
    │   ├── RangeEndsFirst      a range whose end is before its start
    │   ├── ProfileError        the profiles file or a profile in it cannot be used
    │   └── MissingExtra        a part of svcctl that is not installed
    ├── ServiceError            the service answered with a refusal
    │   ├── CredentialsError    key, signature or token refused
    │   ├── InternalError       the service failed while it answered
    │   ├── NotFound            no such job, domain, role or saved query
    │   └── Conflict            the thing exists, in a state that does not allow this
    ├── Unavailable             no usable answer: network, timeout, 408, 429, 5xx, a proxy's page
    │   └── MalformedAnswer     an answer that lacks what the interface promises
    ├── IncompleteResult        an answer that began but is not whole
    │   ├── UnprovenEnd         an answer that may have been cut where its connection ended
    │   └── TooManyRows         an answer with more rows than the client accepts
    ├── EmptyResult             no rows or tables, although they are needed
    │   └── NoRows              no rows, although --fail-on-empty requires some
    ├── Differs                 a comparison that the caller asked for found a difference
    └── Locked                  another run holds the lock

Three exceptions are not errors and are outside of the tree: Declined, ReaderClosed and its subclass PagerLeft.

EXIT_CODES at the end has the exit code of each class. Nothing in this module prints or ends the process, so that
programs can use the client as a library.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self


class CommandLine(str):
    """A command line within a message. A terminal shows it unbroken, so that people can copy it."""


class Advice(str):
    """A text made of parts, which remembers which parts are command lines."""

    commands: tuple[str, ...]

    def __new__(cls, *parts: str) -> Self:
        advice = super().__new__(cls, "".join(parts))
        advice.commands = tuple(command for part in parts for command in commands_in(part))
        return advice


def commands_in(text: str) -> tuple[str, ...]:
    """The known command lines in a text: those of an Advice, or the text itself if it is a CommandLine."""
    return (text,) if isinstance(text, CommandLine) else text.commands if isinstance(text, Advice) else ()


def advice_of(*texts: str | None) -> Advice | None:
    """Several hints joined into one, without repetitions; None if there are none."""
    parts: list[str] = []
    for text in dict.fromkeys(filter(None, texts)):
        separator = [" " if parts[-1].endswith("?") else "; "] if parts else []
        parts += [*separator, text]
    return Advice(*parts) if parts else None


class ErrorSubject(NamedTuple):
    """The thing in a file that an error is about: its kind, its name, and the file and line if known.

    `repeats`: the failed operation can safely be repeated, even if part of it was done.
    """

    kind: str
    name: str
    place: str | None
    repeats: bool = False


class SvcctlError(Exception):
    """The base of all errors: a one-line message with the caller's own value, and often a hint on what to do.

    The message never changes. Code that catches the error and knows more sets another field, adds a note (`add_note`),
    or raises an error of the same kind with another message (`saying`).

    `reason` identifies the cause for programs, in lower case with hyphens; `data` has the values of the message and can
    be written as JSON. Each class has a general reason. The service and the client never name an svcctl command in a
    hint: the command line makes such hints from `reason` and `data`.
    """

    reason = "failed"
    data: Mapping[str, Any] = MappingProxyType({})
    subject: ErrorSubject | None = None

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        reason: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if reason is not None:
            self.reason = reason
        if data is not None:
            self.data = data

    def __reduce__(self) -> Any:
        """Pickle the error without calling its constructor, so that every error can pass between processes."""
        return type(self).__new__, (type(self), *self.args), {**vars(self), "data": dict(self.data)}

    def advised_by(self, cause: SvcctlError) -> Self:
        """This error, with the hint, the reason and the data of its cause."""
        self.hint, self.reason, self.data = cause.hint, cause.reason, cause.data
        return self

    def saying(self, message: str) -> Self:
        """A copy of this error with another message; the class, the other fields and the notes stay."""
        error = type(self).__new__(type(self), message)
        vars(error).update(vars(self), message=message)
        return error


class UsageError(SvcctlError):
    """An option, argument, file or setting that cannot be used."""

    reason = "unusable"


class RangeEndsFirst(UsageError):
    """A range whose end is before its start."""


class ProfileError(UsageError):
    """A profile or profiles file that is missing, unreadable, readable by others, or incomplete."""


class MissingExtra(UsageError):
    """A feature whose packages are not installed; the hint names the extra that has them."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs packages that are not installed",
            hint=Advice(
                "install them with: ",
                CommandLine(f"pip install 'svcctl[{extra}]'"),
                " (in a clone: ",
                CommandLine(f"pip install '.[{extra}]'"),
                ")",
            ),
        )


class QueryPosition(NamedTuple):
    """A position in a query's text: line and column, counted from 1, in characters."""

    line: int
    column: int


class ServiceError(SvcctlError):
    """A refusal by the service: its message, its code (`code`, `status` or the HTTP status) and the request's cid.

    `place` is the position of a mistake in the text of the query, `query`, if the service says where it is.
    """

    reason = "refused"

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        cid: str | None = None,
        hint: str | None = None,
        place: QueryPosition | None = None,
        query: str | None = None,
        reason: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, hint=hint, reason=reason, data=data)
        self.code = code
        self.cid = cid
        self.place = place
        self.query = query


class CredentialsError(ServiceError):
    """Credentials refused: HTTP 401 or 403, or a response that rejects the key, the signature or the token."""

    reason = "credentials-refused"


class InternalError(ServiceError):
    """The service failed on this request: HTTP 500, or a response with that code. Other requests may succeed."""

    reason = "internal-error"


class NotFound(ServiceError):
    """A job, domain, role or saved query that does not exist: domain error 106, job status 100, or HTTP 404."""

    reason = "not-found"


class Conflict(ServiceError):
    """An operation that the state of the thing does not allow: domain error 117, job status 101 or 108, or HTTP 409."""

    reason = "conflict"


class Unavailable(SvcctlError):
    """No usable answer after all retries.

    `status` is the HTTP status if that is the reason. `retry_after` is the number of seconds that the service asks its
    clients to wait, if it says so.
    """

    reason = "unavailable"

    status: int | None = None
    retry_after: float | None = None
    unanswered = False
    """Whether there was no answer at all, so that the connection is at fault."""
    untrusted = False
    """Whether the service's certificate is from an unknown CA."""


class MalformedAnswer(Unavailable):
    """A successful answer without a list, a record or a member that the interface promises."""


class IncompleteResult(SvcctlError):
    """A result that was cut off, ended in an error, or could not be written completely.

    `rows` is the number of whole rows delivered before that, if known.
    """

    reason = "incomplete"

    def __init__(
        self,
        message: str,
        *,
        rows: int | None = None,
        hint: str | None = None,
        reason: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, hint=hint, reason=reason, data=data)
        self.rows = rows


class UnprovenEnd(IncompleteResult):
    """An answer that may have been cut: only the end of the connection marks its end, and that was not clean."""

    closed = False
    """True if the connection was closed without the close_notify of TLS; False if it broke."""


class TooManyRows(IncompleteResult):
    """An answer with more rows than the client accepts; `rows` of them were delivered."""


class EmptyResult(SvcctlError):
    """A result without rows or tables, although they are needed."""


class NoRows(EmptyResult):
    """A query without rows, although --fail-on-empty requires some. With --quiet, only the exit code reports it."""


class Differs(SvcctlError):
    """A difference between the actual state and the expected one, in a command that compares them."""


class Locked(SvcctlError):
    """A lock that another process holds."""

    reason = "locked"


def reason(error: Exception) -> str:
    """The cause of an error of the system or of a codec, in the system's words and without the error number."""
    code = getattr(error, "errno", None)
    if code == errno.EBADF:
        return "it is closed"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    system_text = os.strerror(code) if isinstance(code, int) and code > 0 else None
    return getattr(error, "strerror", None) or system_text or str(error)


def as_svcctl_error(error: BaseException) -> BaseException:
    """An unexpected OSError or encoding error as an svcctl error; any other error unchanged.

    Such errors come from the system or from the user's text. They are no defects of svcctl.
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return IncompleteResult(os.strerror(error.errno))
    if isinstance(error, OSError) and isinstance(error.filename, str | bytes):
        return UsageError(f"{os.fsdecode(error.filename)} cannot be used: {reason(error)}")
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return UsageError(f"'{error.object}' holds bytes that are not UTF-8")
    return error


class Terminated(BaseException):
    """The process received SIGTERM, which asks it to end as Ctrl-C does."""


class Interrupted(Terminated):
    """Ctrl-C with a note for the user. It is not a KeyboardInterrupt, because Typer would drop the note."""


class Declined(Exception):
    """A question that the person did not answer with yes."""


class ReaderClosed(Exception):
    """The reader closed stdout, as `head` does, so there is nobody to write for."""


class PagerLeft(ReaderClosed):
    """The person left the pager before the end of the output."""


class ExitCode(NamedTuple):
    """An exit code, on which scripts may rely, and the errors that end with it."""

    code: int
    meaning: str
    errors: tuple[type[BaseException], ...] = ()


EXIT_CODES = (
    ExitCode(0, "done (also with zero rows)", (PagerLeft,)),
    ExitCode(1, "the service refused, or a job that 'job wait' waits for fails", (ServiceError, SvcctlError)),
    ExitCode(2, "usage: an option, argument, file or profile cannot be used", (UsageError,)),
    ExitCode(3, "credentials refused", (CredentialsError,)),
    ExitCode(4, "not found (a job, domain, role, saved query, or a table of 'tables')", (NotFound,)),
    ExitCode(5, "conflicting state (already stopped, already enabled, …)", (Conflict,)),
    ExitCode(6, "no usable answer after retries (network, timeout, 408, 429, 5xx, empty)", (Unavailable,)),
    ExitCode(
        7,
        "incomplete result (cut, ended in an error, not written, over max_rows, windows or rows missing)",
        (IncompleteResult,),
    ),
    ExitCode(8, "empty result, with --fail-on-empty", (EmptyResult,)),
    ExitCode(9, "another run holds the lock", (Locked,)),
    ExitCode(10, "something differs (--check, export reconcile, additions in job verify)", (Differs,)),
    ExitCode(
        130,
        "interrupted, or a question was not answered with yes",
        (KeyboardInterrupt, Interrupted, Declined),
    ),
    ExitCode(141, "the reader closed the pipe (nothing is printed)", (ReaderClosed,)),
    ExitCode(143, "ended by SIGTERM, as systemd and Kubernetes stop a process", (Terminated,)),
)
_CODES = {kind: row.code for row in EXIT_CODES for kind in row.errors}


def exit_code(error: BaseException) -> int:
    """The exit code in the row of EXIT_CODES for the error's class or nearest base class; 1 without a row."""
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), 1)
