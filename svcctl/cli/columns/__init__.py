"""The columns of lists, in modules such as `job`. Completion reads these modules, so they do not import any command."""

from __future__ import annotations

from importlib import import_module

LISTS = {
    "job list": ("job", "JOBS"),
    "domain list": ("domain", "DOMAINS"),
    "role list": ("role", "ROLES"),
    "profile list": ("profile", "PROFILES"),
    "tables": ("tables", "TABLES"),
}
"""The commands with --columns and --sort, each with the module and the variable that define its columns."""


def column_names(command: str) -> tuple[str, ...]:
    """Return the names of the columns that a command can print; empty if the command has no row in `LISTS`."""
    if command not in LISTS:
        return ()
    module, listing = LISTS[command]
    names: tuple[str, ...] = getattr(import_module(f"{__name__}.{module}"), listing).names
    return names
