"""`svcctl role`: custom roles of a domain, from options or from files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from svcctl.api.if_needed import done_if, no_role
from svcctl.api.models import ALL, Role
from svcctl.api.role_changes import Change, make, plan
from svcctl.commands import verbs_of
from svcctl.completion.words import FILES, Completes
from svcctl.context import Context
from svcctl.errors import UsageError
from svcctl.inputs import role_files
from svcctl.inputs.role_files import WrittenRole
from svcctl.options import FormatOpt, YesOpt
from svcctl.terminal.records import FINDINGS, ROLE, ROLES
from svcctl.terminal.tables import visible

DomainArg = Annotated[str, typer.Argument(metavar="DOMAIN", help="Name of a domain."), Completes("domains")]
RoleArg = Annotated[str, typer.Argument(metavar="ROLE", help="Name of a role.")]
OptionalRoleArg = Annotated[
    str | None, typer.Argument(metavar="[ROLE]", help="Name of a role; a file may name it instead.")
]
FilesArg = Annotated[
    list[Path], typer.Argument(metavar="FILE…", help="Role files; - is standard input."), Completes(FILES)
]
_FILE = typer.Option("--file", "-F", metavar="FILE", help="Roles in YAML (see 'svcctl role lint --help').")
FileOpt = Annotated[Path | None, _FILE, Completes(FILES)]
NeededFileOpt = Annotated[Path, _FILE, Completes(FILES)]
NameOpt = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the role.")]
NewNameOpt = Annotated[str | None, typer.Option("--name", metavar="NAME", help="New name of the role.")]
DescriptionOpt = Annotated[str | None, typer.Option("--description", metavar="TEXT")]
PoliciesOpt = Annotated[
    list[str] | None,
    typer.Option("--policies", metavar="NAME", help="A policy; again for more; '*' for all, '' for none."),
]
ApplicationsOpt = Annotated[
    list[str] | None,
    typer.Option("--applications", metavar="NAME", help="An application; again for more; '*' for all, '' for none."),
]
ResourceIdsOpt = Annotated[
    list[str] | None,
    typer.Option("--resource-ids", metavar="LABEL=N,N", help="IDs; again for more; '*' for all, '' for none."),
]
FinderOpt = Annotated[str | None, typer.Option("--finder-name", metavar="NAME", help="Default finder.")]
DefaultOpt = Annotated[
    str | None,
    typer.Option("--default-application-name", metavar="NAME", help="Default application; '' removes it on update."),
]
DryRunOpt = Annotated[bool, typer.Option("--dry-run", help="Show the difference and change nothing.")]
IfNeededOpt = Annotated[bool, typer.Option("--if-needed", help="Succeed when there is nothing to do.")]

_app = verbs_of("role")


def register(app: typer.Typer) -> None:
    app.add_typer(_app, name="role")


@_app.command("list")
def list_(ctx: typer.Context, domain: DomainArg, format: FormatOpt = None) -> None:
    """List the roles of a domain"""
    svc: Context = ctx.obj
    chosen = svc.format(format, lists=True)
    svc.output.records(ROLES, svc.client.roles(domain), chosen)


@_app.command()
def show(ctx: typer.Context, domain: DomainArg, role: RoleArg, format: FormatOpt = None) -> None:
    """Show a role, the fields that cannot be set too"""
    svc: Context = ctx.obj
    chosen = svc.format(format, lists=True)
    svc.output.records(ROLE, [svc.client.role(domain, role)], chosen)


@_app.command()
def create(
    ctx: typer.Context,
    domain: DomainArg,
    name: NameOpt = None,
    description: DescriptionOpt = None,
    policies: PoliciesOpt = None,
    applications: ApplicationsOpt = None,
    resource_ids: ResourceIdsOpt = None,
    finder_name: FinderOpt = None,
    default_application_name: DefaultOpt = None,
    file: FileOpt = None,
    yes: YesOpt = False,
) -> None:
    """Create a role from options, or the roles of a file

    The interface's rules are checked before anything is sent. A role that grants all of something (a name only, or '*')
    is asked about.

    \b
    svcctl role create acme --name Readers --policies Search
    svcctl role create acme -F roles.yaml
    """
    svc: Context = ctx.obj
    written = _written(
        file,
        name=name,
        description=description,
        policies=_names(policies),
        applications=_names(applications),
        resourceIds=_resources(resource_ids),
        finderName=finder_name,
        defaultApplicationName=default_application_name,
    )
    role_files.require_sound(written)
    _ask_about_grants(svc, domain, written, yes)
    for one in written:
        svc.client.create_role(domain, one.role)
        svc.diagnostics.detail(f"{one.label} created in {domain}")


@_app.command()
def update(
    ctx: typer.Context,
    domain: DomainArg,
    role: OptionalRoleArg = None,
    name: NewNameOpt = None,
    description: DescriptionOpt = None,
    policies: PoliciesOpt = None,
    applications: ApplicationsOpt = None,
    resource_ids: ResourceIdsOpt = None,
    finder_name: FinderOpt = None,
    default_application_name: DefaultOpt = None,
    file: FileOpt = None,
    yes: YesOpt = False,
) -> None:
    """Change what is given of a role; the rest stays as it is

    \b
    svcctl role update acme Readers --policies Search --policies Lookups
    svcctl role update acme Readers --default-application-name ''
    svcctl role update acme -F roles.yaml
    """
    svc: Context = ctx.obj
    written = _written(
        file,
        name=name,
        description=description,
        policies=_names(policies),
        applications=_names(applications),
        resourceIds=_resources(resource_ids),
        finderName=finder_name,
        defaultApplicationName=default_application_name,
    )
    role_files.require_sound(written, update=True)
    changes = [_target(one, role, len(written)) for one in written]
    _ask_about_grants(svc, domain, written, yes, update=True)
    for target, wanted in changes:
        svc.client.update_role(domain, target, wanted)
        svc.diagnostics.detail(f"role '{target}' updated in {domain}")


@_app.command()
def apply(
    ctx: typer.Context, domain: DomainArg, file: NeededFileOpt, yes: YesOpt = False, dry_run: DryRunOpt = False
) -> None:
    """Make the roles of a domain as a file has them, after showing what changes

    Roles that do not exist are created; of the others, the fields in the file are changed. Roles that are not in the
    file stay as they are. Applying the same file twice changes nothing the second time.
    """
    svc: Context = ctx.obj
    written = role_files.read_roles(file)
    role_files.require_sound(written, update=True)
    changes = [(one, change) for one in written if (change := _plan(svc, domain, one)) is not None]
    role_files.require_sound([one for one, change in changes if change.creates])
    for _, change in changes:
        _show(svc, domain, change)
    if not changes:
        svc.diagnostics.note(f"nothing to do: the roles of {domain} are as {file} has them")
    if not changes or dry_run:
        return
    if not yes:
        grants = [text for one, change in changes for text in _grants(one, domain, change.creates)]
        svc.ask(" ".join([*grants, "Apply this?"]))
    for one, change in changes:
        make(svc.client, domain, change, before_creating=partial(role_files.require_sound, [one]))


@_app.command()
def rm(
    ctx: typer.Context, domain: DomainArg, role: RoleArg, yes: YesOpt = False, if_needed: IfNeededOpt = False
) -> None:
    """Delete a role"""
    svc: Context = ctx.obj
    if not yes:
        svc.ask(f"Delete role '{role}' of {domain}?")
    with done_if(if_needed, no_role, svc.diagnostics.note):
        svc.client.delete_role(domain, role)


@_app.command("lint")
def lint_(ctx: typer.Context, files: FilesArg, format: FormatOpt = None) -> None:
    """Check role files against the interface's rules, without a service

    Errors are what a service refuses: then the exit code is 2. Warnings are grants that are broader than they look.
    Rule 7 (policies exist and are available) only the service can check.

    \b
    A file holds one role, a list of them, or several documents:
      name: Night shift                  required; alone, it grants everything
      description: May look
      policies: [Search, Alerts]         names, or one, or '*' for all (quoted)
      applications: [explorer]           the same
      resourceIds: {tables: [1, 2]}      integers by any label, or '*' for all
      finderName: default
      defaultApplicationName: explorer   one of the applications
    """
    svc: Context = ctx.obj
    chosen = svc.format(format, lists=True)
    found = [one for file in files for role in role_files.read_roles(file) for one in role.findings()]
    svc.output.records(FINDINGS, found, chosen)
    if errors := sum(one.level == "error" for one in found):
        raise UsageError(f"{errors} error{'s' if errors > 1 else ''} in {', '.join(map(str, files))}")


# From what is written to what is sent


def _written(file: Path | None, **options: Any) -> list[WrittenRole]:
    """The roles of the file, or the one that the options make."""
    fields = {key: value for key, value in options.items() if value is not None}
    if file is not None and fields:
        raise UsageError("a role is given both by --file and by options", hint="change the file, or leave it out")
    if file is not None:
        return role_files.read_roles(file)
    if not fields:
        raise UsageError("nothing is given of the role", hint="give it with options or with --file")
    return [WrittenRole(fields)]


def _names(given: list[str] | None) -> str | list[str] | None:
    if given is None:
        return None
    return ALL if given == [ALL] else [] if given == [""] else given


def _resources(given: list[str] | None) -> dict[str, list[int]] | None:
    if given is None:
        return None
    if given == [ALL]:
        return {ALL: []}
    ids: dict[str, list[int]] = {}
    for text in given if given != [""] else []:
        label, equals, numbers = text.rpartition("=")
        words = [word.strip() for word in numbers.split(",") if word.strip()]
        if not equals or not all(word.removeprefix("-").isdecimal() and word.isascii() for word in words):
            raise UsageError(f"--resource-ids '{text}' is not of the form LABEL=1,2,3")
        ids.setdefault(label, []).extend(map(int, words))
    return ids


def _target(written: WrittenRole, named: str | None, count: int) -> tuple[str, Role]:
    """The role that an update is about, and its changes: the name among them only when it is a new one."""
    wanted = written.role
    if named is not None and count > 1:
        raise UsageError(
            f"{written.source} holds {count} roles", hint=f"leave out '{named}': each is updated by its name"
        )
    target = named or wanted.name
    if target is None or (named is None and written.source == role_files.COMMAND_LINE):
        raise UsageError(f"{written.place()}: which role?", hint="name it after the domain")
    return target, replace(wanted, name=None) if wanted.name == target else wanted


def _ask_about_grants(
    svc: Context, domain: str, written: Iterable[WrittenRole], yes: bool, *, update: bool = False
) -> None:
    """Ask about roles that grant all of something; --yes answers."""
    grants = [text for one in written for text in _grants(one, domain, not update)]
    if grants and not yes:
        svc.ask(" ".join([*grants, "Go on?"]))


def _grants(written: WrittenRole, domain: str, creates: bool) -> list[str]:
    """What a role grants all of, as a sentence; no sentence for one that does not."""
    granted = written.grants_all(update=not creates)
    return [f"{written.label} grants {granted} of {domain}, later ones too."] if granted else []


# Applying


def _plan(svc: Context, domain: str, written: WrittenRole) -> Change | None:
    """The change that a role in a file needs; None when it needs none."""
    name = written.role.name
    if name is None:
        raise UsageError(f"{written.place()}: the name is missing (rule 1)")
    return plan(svc.client, domain, name, written.role)


def _show(svc: Context, domain: str, change: Change) -> None:
    """The difference, as lines with - and +."""
    about = "" if change.readable else " (this service does not read roles: what it has now is not known)"
    what = "new role" if change.creates else "role"
    svc.output.text(f"{what} '{visible(change.name)}' in {visible(domain)}{about}")
    for one in change.differences:
        if change.current is not None:
            svc.output.change("-", f"{one.key}: {one.before or 'none'}")
        svc.output.change("+", f"{one.key}: {one.after or 'none'}")
