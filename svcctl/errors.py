"""Every error that svcctl raises on purpose.

    SvcctlError
    ├── UsageError              what the caller typed or configured cannot be used
    │   ├── RangeEndsFirst      a range that ends before it starts
    │   ├── ProfileError        the profiles file or a profile in it cannot be used
    │   └── MissingExtra        a part of svcctl that is not installed
    ├── ServiceError            the service answered with a refusal
    │   ├── CredentialsError    key, signature or token refused
    │   ├── InternalError       the service failed while it answered
    │   ├── NotFound            no such job, domain, role or saved query
    │   └── Conflict            the state of an object does not allow the operation
    ├── Unavailable             no usable answer: network, timeout, 408, 429, 5xx, a proxy's page
    │   └── MalformedAnswer     an answer that lacks what the interface promises
    ├── IncompleteResult        an answer that began but is not complete
    │   ├── UnprovenEnd         an answer that may have been cut off when its connection ended
    │   └── TooManyRows         an answer with more rows than the client accepts
    ├── EmptyResult             no rows or tables, although they are needed
    │   └── NoRows              no rows, although --fail-on-empty requires some
    ├── Differs                 a comparison found a difference
    └── Locked                  another run holds the lock

Some exceptions are not errors, so they are outside of the tree: Declined, ReaderClosed with its subclass PagerLeft, and
Terminated with its subclass Interrupted.

The table EXIT_CODES, at the end of this module, has the exit code of each class. This module neither prints a text nor
ends the process, so that programs can use the client as a library.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self


class CommandLine(str):
    """A command line within a message.

    On a terminal, a command line is never broken into several lines, so that people can copy the command line.
    """


class Advice(str):
    """A text that is made of several parts. The object stores which of the parts are command lines."""

    commands: tuple[str, ...]

    def __new__(cls, *parts: str) -> Self:
        advice = super().__new__(cls, "".join(parts))
        advice.commands = tuple(command for part in parts for command in commands_in(part))
        return advice


def commands_in(text: str) -> tuple[str, ...]:
    """Return the command lines in an Advice or a CommandLine. For any other text, the result is empty."""
    return (text,) if isinstance(text, CommandLine) else text.commands if isinstance(text, Advice) else ()


def advice_of(*texts: str | None) -> Advice | None:
    """Join several hints into one, without repetitions. Returns None if there are no hints."""
    parts: list[str] = []
    for text in dict.fromkeys(filter(None, texts)):
        separator = [" " if parts[-1].endswith("?") else "; "] if parts else []
        parts += [*separator, text]
    return Advice(*parts) if parts else None


class ErrorSubject(NamedTuple):
    """An object to which an error refers, such as a job in a file: its kind and its name.

    `place` is the file, and the line if the line is known. `repeats` says that the failed operation can safely be
    repeated, even if a part of the operation was done.
    """

    kind: str
    name: str
    place: str | None
    repeats: bool = False


class SvcctlError(Exception):
    """The base class of all errors. An error has a one-line message, and often a hint.

    The message of an error never changes. Code that catches an error may know more about the error. Such code sets
    another field, adds a note (`add_note`), or raises an error of the same class with another message (`saying`).

    `reason` identifies the cause of the error for programs. The reason is in lower case, with hyphens. If an error has
    no reason of its own, it has the reason of its class. `data` contains the values in the message, and can be written
    as JSON. The service and the client library never name a command of svcctl in a hint. The command-line program makes
    such hints from `reason` and `data`.
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
        """Pickle the error without its constructor, because subclasses have constructors with other parameters."""
        return type(self).__new__, (type(self), *self.args), {**vars(self), "data": dict(self.data)}

    def advised_by(self, cause: SvcctlError) -> Self:
        """Give this error the hint, the reason and the data of `cause`. Returns this error."""
        self.hint, self.reason, self.data = cause.hint, cause.reason, cause.data
        return self

    def saying(self, message: str) -> Self:
        """Return a copy of this error with another message. The class, the other fields and the notes are the same."""
        error = type(self).__new__(type(self), message)
        vars(error).update(vars(self), message=message)
        return error


class UsageError(SvcctlError):
    """An option, argument, file or setting that cannot be used."""

    reason = "unusable"


class RangeEndsFirst(UsageError):
    """A range that ends before it starts."""


class ProfileError(UsageError):
    """A profile or profiles file that is missing, unreadable, readable by others, or incomplete."""


class MissingExtra(UsageError):
    """A feature whose packages are not installed. The hint is the command that installs these packages."""

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
    """A position in the text of a query: the line and the column, both counted from 1. Columns are in characters."""

    line: int
    column: int


class ServiceError(SvcctlError):
    """A refusal by the service, with its message, its code, and the ID of the request (`cid`).

    `code` is the member `code` or `status` of the response, or the HTTP status. `query` is the text of the query.
    `place` is the position of the mistake in this text, if the service states the position.
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
    """A refusal of the credentials: HTTP 401 or 403, or a response that rejects the key, the signature or the token."""

    reason = "credentials-refused"


class InternalError(ServiceError):
    """The service failed on this request. The HTTP status or the code in the response is 500.

    Other requests may succeed.
    """

    reason = "internal-error"


class NotFound(ServiceError):
    """A job, domain, role or saved query that does not exist: domain error 106, job status 100, or HTTP 404."""

    reason = "not-found"


class Conflict(ServiceError):
    """An operation that the state of its object does not allow.

    The service reports domain error 117, job status 101 or 108, or HTTP 409.
    """

    reason = "conflict"


class Unavailable(SvcctlError):
    """No usable answer after all retries.

    `status` is the HTTP status of the last answer, if the status caused the error. `retry_after` is the delay in
    seconds, if the service asked for a delay.
    """

    reason = "unavailable"

    status: int | None = None
    retry_after: float | None = None
    unanswered = False
    """Whether there was no answer at all, which means that the connection failed."""
    untrusted = False
    """Whether the certificate of the service is from an unknown CA."""


class MalformedAnswer(Unavailable):
    """A successful answer that lacks a list, a record or a member of the documented answer."""


class IncompleteResult(SvcctlError):
    """A result that was cut off, ended in an error, or could not be written completely.

    `rows` is the number of complete rows that were delivered before the error; None if the number is unknown.
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
    """An answer that may have been cut off.

    Only the end of the connection shows where the answer ends, and the connection did not end properly.
    """

    closed = False
    """True if the connection was closed without the close_notify of TLS; False if the connection broke."""


class TooManyRows(IncompleteResult):
    """An answer with more rows than the client accepts. The client has delivered the first `rows` rows."""


class EmptyResult(SvcctlError):
    """A result without rows or tables, although they are needed."""


class NoRows(EmptyResult):
    """A query without rows, although --fail-on-empty requires rows.

    With --quiet, only the exit code shows this error.
    """


class Differs(SvcctlError):
    """A difference between the actual state and the expected state, in a command that compares these states."""


class Locked(SvcctlError):
    """A lock that another process holds."""

    reason = "locked"


def reason(error: Exception) -> str:
    """Return the cause of an error of the system or a codec, in the system's words and without the error number."""
    code = getattr(error, "errno", None)
    if code == errno.EBADF:
        return "it is closed"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    system_text = os.strerror(code) if isinstance(code, int) and code > 0 else None
    return getattr(error, "strerror", None) or system_text or str(error)


def as_svcctl_error(error: BaseException) -> BaseException:
    """Convert an unexpected OSError or encoding error to an svcctl error. Any other error is returned unchanged.

    Such errors are caused by the system or by the user's text, and not by a defect of svcctl.
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return IncompleteResult(os.strerror(error.errno))
    if isinstance(error, OSError) and isinstance(error.filename, str | bytes):
        return UsageError(f"{os.fsdecode(error.filename)} cannot be used: {reason(error)}")
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return UsageError(f"'{error.object}' contains bytes that are not UTF-8")
    return error


class Terminated(BaseException):
    """An exception that is raised when the process receives SIGTERM.

    The exception ends the process in the same way as Ctrl-C.
    """


class Interrupted(Terminated):
    """An interruption by Ctrl-C, with a note for the user.

    This class is used because the library Typer catches each KeyboardInterrupt, so the note would be lost.
    """


class Declined(Exception):
    """An exception that is raised if the person does not answer a question with yes."""


class ReaderClosed(Exception):
    """An exception that is raised if no process reads stdout any more.

    For example, the program `head` closes the pipe after the first lines.
    """


class PagerLeft(ReaderClosed):
    """An exception that is raised if the person has left the pager before the end of the output."""


class ExitCode(NamedTuple):
    """An exit code, its meaning, and the errors that end the process with this code. Scripts may rely on exit codes."""

    code: int
    meaning: str
    errors: tuple[type[BaseException], ...] = ()


EXIT_CODES = (
    ExitCode(0, "success, even if the result has no rows", (PagerLeft,)),
    ExitCode(1, "the service refused the request, or a job failed during 'job wait'", (ServiceError, SvcctlError)),
    ExitCode(2, "an option, argument, file or profile cannot be used", (UsageError,)),
    ExitCode(3, "the service refused the credentials", (CredentialsError,)),
    ExitCode(4, "no such job, domain, role or saved query; with 'tables', no such table", (NotFound,)),
    ExitCode(5, "conflict with the current state, such as a job that is already stopped", (Conflict,)),
    ExitCode(6, "no usable answer after retries (no connection, timeout, HTTP 503, …)", (Unavailable,)),
    ExitCode(
        7,
        "an answer is incomplete or has more rows than max_rows, output cannot be written, or rows are missing in an "
        "export or at the destination of a job",
        (IncompleteResult,),
    ),
    ExitCode(8, "the result has no rows, and --fail-on-empty is given", (EmptyResult,)),
    ExitCode(9, "another process uses the same files, such as another run of the export", (Locked,)),
    ExitCode(10, "--check or 'export reconcile' found differences, or 'job verify' found extra rows", (Differs,)),
    ExitCode(
        130,
        "interrupted with Ctrl-C, or a question was not answered with yes",
        (KeyboardInterrupt, Interrupted, Declined),
    ),
    ExitCode(141, "the program that reads the output closed the pipe; svcctl prints no error", (ReaderClosed,)),
    ExitCode(143, "ended by SIGTERM, the signal of systemd and Kubernetes to stop a process", (Terminated,)),
)
_CODES = {kind: row.code for row in EXIT_CODES for kind in row.errors}


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error, from the row of EXIT_CODES for its class.

    If the class has no row, the row of the nearest base class is used. If no base class has a row, the code is 1.
    """
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), 1)
