"""The guard of a client: settings that forbid changes and limit the rows of answers.

A guard protects against mistakes, not against attackers. Anyone who has the credentials can use them without a guard.
"""

from __future__ import annotations

from typing import NamedTuple

from svcctl.errors import TooManyRows, UsageError
from svcctl.words import counted


class Guard(NamedTuple):
    """The settings `read_only` and `max_rows`, and the source of each setting in words, such as `profile audit`."""

    read_only: bool = False
    read_only_source: str = ""
    max_rows: int | None = None
    max_rows_source: str = ""

    @property
    def is_set(self) -> bool:
        return self.read_only or self.max_rows is not None

    def refuse_change(self, what: str) -> None:
        """Raise UsageError if the client is read-only. `what` names the request or command that would change data."""
        if self.read_only:
            raise UsageError(f"{what} is refused: read_only is true in {self.read_only_source}", reason="read-only")

    def too_many_rows(self) -> TooManyRows:
        """Return the error for an answer with more rows than `max_rows`."""
        return TooManyRows(
            f"the result has more than {counted(self.max_rows or 0, 'row')}, the limit of max_rows of "
            f"{self.max_rows_source}",
            rows=self.max_rows,
            reason="too-many-rows",
            data={"max_rows": self.max_rows},
        )

    def check_limit(self, mode: str, limit: int | None) -> None:
        """Check the limit of a query in a format in which rows cannot be counted.

        Raises UsageError if the query has no limit, or a limit of more than `max_rows`.
        """
        if self.max_rows is None or (limit is not None and limit <= self.max_rows):
            return
        raise UsageError(
            f"rows of {mode} are not counted, so the query needs a limit of at most {self.max_rows}, which is max_rows "
            f"of {self.max_rows_source}",
            reason="uncounted-rows",
            data={"max_rows": self.max_rows},
        )


UNGUARDED = Guard()
