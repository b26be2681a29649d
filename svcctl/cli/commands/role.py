"""`svcctl role`: custom roles of a domain, from options or from files."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from svcctl.api.models import Role, is_built_in
from svcctl.api.refusals import no_role
from svcctl.api.roles import known_domain, known_role, reads_roles, require
from svcctl.cli.apply.options import ApplyOptions
from svcctl.cli.apply.plan import Action
from svcctl.cli.apply.role_steps import Roles, grants
from svcctl.cli.apply.steps import carry_out
from svcctl.cli.columns.role import ROLE, ROLES
from svcctl.cli.commands import verbs_of
from svcctl.cli.completion.words import FILES, Completes
from svcctl.cli.context import Context
from svcctl.cli.idempotence import done_if
from svcctl.cli.inputs import role_files, yaml_files
from svcctl.cli.inputs.role_files import Located, RoleOptions, WrittenRole
from svcctl.cli.listing import ListOptions, print_list
from svcctl.cli.options import FormatOpt, YesOpt, spread
from svcctl.errors import Advice, CommandLine, UsageError
from svcctl.profiles import BUILT_IN
from svcctl.terminal.escapes import visible
from svcctl.terminal.records import Listing, attributes
from svcctl.words import counted, plural

DomainArg = Annotated[
    str,
    typer.Argument(metavar="DOMAIN", help="Name of a domain; the @RESELLER part is optional."),
    Completes("domains"),
]
RoleArg = Annotated[str, typer.Argument(metavar="ROLE", help="Name of a role."), Completes("roles")]
OptionalRoleArg = Annotated[
    str | None, typer.Argument(metavar="[ROLE]", help="Name of a role (optional if a file names it).")
]
ExportedRoleArg = Annotated[str | None, typer.Argument(metavar="[ROLE]", help="Name of a role (default: all roles).")]
FilesArg = Annotated[
    list[Path], typer.Argument(metavar="FILE…", help="Role files; - reads standard input."), Completes(FILES)
]
IfNeededOpt = Annotated[bool, typer.Option("--if-needed", help="Do not fail if the role does not exist.")]

PruneOpt = Annotated[
    bool, typer.Option("--prune", help="Remove roles that no file has, but never ADMIN, OWNER and USER.")
]


def _finding(finding: Located, width: int) -> str:
    """Return a finding of `role lint` as wrapped text."""
    line = "" if finding.line is None else f", line {finding.line}"
    role = "" if finding.role is None else f", role '{finding.role}'"
    rule = "" if finding.rule is None else f" (rule {finding.rule})"
    return textwrap.fill(
        visible(f"{finding.file}{line}{role}: {finding.level}: {finding.message}{rule}"),
        min(width, 100),
        subsequent_indent=" " * 4,
        break_long_words=False,
        break_on_hyphens=False,
    )


FINDINGS: Listing[Located] = Listing(
    attributes("file", "line", "role", "level", "rule", "message", line="int4", rule="int4"), paragraph=_finding
)

_app = verbs_of("role")


def register(app: typer.Typer) -> None:
    app.add_typer(_app, name="role")


@_app.command("list")
@spread
def list_(ctx: typer.Context, domain: DomainArg, options: ListOptions) -> None:
    """List the roles of a domain"""
    svc: Context = ctx.obj

    def roles() -> Sequence[Role]:
        with known_domain(svc.client, domain):
            return svc.client.roles(domain)

    print_list(svc, ROLES, roles, options, f"no roles in {domain}")


@_app.command()
def show(ctx: typer.Context, domain: DomainArg, role: RoleArg, format: FormatOpt = None) -> None:
    """Show a role, including its read-only fields"""
    svc: Context = ctx.obj
    chosen = svc.format(format, lists=True)
    with known_role(svc.client, domain, role):
        model = svc.client.role(domain, role)
    svc.output.records(ROLE, [model], chosen, single=True)


@_app.command()
def export(ctx: typer.Context, domain: DomainArg, role: ExportedRoleArg = None) -> None:
    """Print roles as a file for 'svcctl role apply'

    \b
    svcctl role export acme > exported.yaml
    svcctl role apply acme -F exported.yaml --dry-run
    """
    svc: Context = ctx.obj
    with known_role(svc.client, domain, role or ""):
        roles = svc.client.roles(domain) if role is None else [svc.client.role(domain, role)]
        roles = [candidate for candidate in roles if not is_built_in(str(candidate.name))]
    svc.output.text(yaml_files.to_yaml([candidate.body() for candidate in roles]))


@_app.command()
@spread
def create(ctx: typer.Context, domain: DomainArg, options: RoleOptions, yes: YesOpt = False) -> None:
    """Create a role from options, or the roles in a file

    The rules for roles are checked before anything is sent. A role with only a name, or with '*' in a field, grants
    everything of a kind, such as all policies. The command asks before it creates such a role.

    \b
    svcctl role create acme --name Readers --policies Search
    svcctl role create acme -F roles.yaml
    """
    svc: Context = ctx.obj
    written = list(svc.diagnostics.for_each(options.read("no role given"), role_files.require_sound))
    _ask_about_grants(svc, domain, written, yes, lambda: reads_roles(svc.client, domain), Action.CREATE)
    with svc.diagnostics.count_before_failure(written, "created") as counted:
        for role in counted:
            with known_domain(svc.client, domain):
                svc.client.create_role(domain, role.role)
            svc.diagnostics.note(f"created {role.label} in {domain}")
    _note_labels(svc, written)


@_app.command()
@spread
def update(
    ctx: typer.Context, domain: DomainArg, options: RoleOptions, role: OptionalRoleArg = None, yes: YesOpt = False
) -> None:
    """Change the given fields of a role; others stay unchanged

    \b
    svcctl role update acme Readers --policies Search --policies Lookups
    svcctl role update acme Readers --default-application-name ''
    svcctl role update acme -F roles.yaml
    """
    svc: Context = ctx.obj
    sound = partial(role_files.require_sound, update=True)
    written = list(svc.diagnostics.for_each(options.read("nothing to change: no field is given"), sound))
    changes = [role_files.change(document, role, len(written)) for document in written]
    targets = [target for target, _ in changes]
    _ask_about_grants(svc, domain, written, yes, lambda: _require(svc, domain, targets), Action.CHANGE)
    with svc.diagnostics.count_before_failure(changes, "updated") as counted:
        for target, change in counted:
            with known_role(svc.client, domain, target):
                svc.client.update_role(domain, target, change)
            svc.diagnostics.note(f"updated role '{target}' in {domain}")
    _note_labels(svc, written)


@_app.command("apply")
@spread
def apply_(ctx: typer.Context, domain: DomainArg, options: ApplyOptions, prune: PruneOpt = False) -> None:
    """Create and update roles from files, showing the differences

    Roles that do not exist are created. In existing roles, the fields that the file contains are changed. Roles that
    are in no file stay unchanged, unless --prune is given. Applying a file twice changes nothing the second time. If
    the service lists its policies and applications, unknown policies and applications are refused before any change.
    Asks before the first change. See 'svcctl help apply'.
    """
    svc: Context = ctx.obj
    file_roles = role_files.read_roles(options.file, options.var or ())
    written = list(svc.diagnostics.for_each(file_roles, role_files.applied))
    roles = Roles(svc.client, domain)
    with known_domain(svc.client, domain):
        steps = roles.steps(written, prune=prune)
    carry_out(svc, roles, steps, options)


@_app.command()
def rm(
    ctx: typer.Context, domain: DomainArg, role: RoleArg, yes: YesOpt = False, if_needed: IfNeededOpt = False
) -> None:
    """Delete a role; its users need another role"""
    svc: Context = ctx.obj
    with done_if(if_needed, no_role, svc.diagnostics.note):
        with known_role(svc.client, domain, role):
            model = require(svc.client, domain, role)
        lost = f"role '{role}' of {domain}{_whose(model)}"
        if not yes:
            svc.ask(f"Delete {lost}?")
        svc.client.delete_role(domain, role)
        svc.diagnostics.note(f"deleted {lost}")
        if users := _users(model):
            user = users[0] if len(users) == 1 else "EMAIL"
            give = (": ", CommandLine(f"svcctl service accounts user {user} {domain} --role USER"))
            local = give if svc.profile.name in BUILT_IN else ()
            needs = f"{', '.join(users)} {plural(len(users), 'needs', 'need')} another role"
            svc.diagnostics.note(Advice(needs, *local))


def _whose(role: Role | None) -> str:
    return f", the role of {', '.join(users)}" if (users := _users(role)) else ""


def _users(role: Role | None) -> list[str]:
    """Return the users of a role; empty if the service does not list the users."""
    users = None if role is None else role.extra.get("users")
    return list(map(str, users)) if isinstance(users, list) else []


@_app.command("lint")
def lint_(ctx: typer.Context, files: FilesArg, format: FormatOpt = None) -> None:
    """Check role files against the rules, without a service

    An error is something that a service refuses; if there is an error, the exit code is 2. A warning is a grant that is
    broader than it looks. Rule 7 (policies exist and are available) is not checked, because only a service can check
    it.

    \b
    A file holds one role, a list of them, or several documents:
      name: Night shift                  required; a bare name grants everything
      description: May look
      policies: [Search, Alerts]         a name, names or '*' for all (quoted)
      applications: [explorer]           the same
      resourceIds: {ids: [1, 2]}         integers under any label, or '*' for all
      finderName: default
      defaultApplicationName: explorer   one of the applications
    """
    svc: Context = ctx.obj
    chosen = svc.format(format, lists=True)
    linted = [role_files.linted(file) for file in files]
    findings = [finding for file in linted for finding in file.findings]
    if findings or chosen.raw:
        svc.output.records(FINDINGS, findings, chosen)
    for file in linted:
        if not file.findings and not chosen.raw:
            svc.output.text(f"{visible(file.source)}: {counted(file.count, 'role')}, no findings")
    if wrong := [file.source for file in linted if file.errors]:
        errors = sum(file.errors for file in linted)
        raise UsageError(f"{counted(errors, 'error')} in {', '.join(wrong)}")


def _ask_about_grants(
    svc: Context,
    domain: str,
    written: Iterable[WrittenRole],
    yes: bool,
    look: Callable[[], object],
    action: Action,
) -> None:
    """Ask for confirmation before a role gets everything of a kind, such as all policies. With `yes`, nothing is asked.

    The function `look` is called before the question. It raises an error if the role or the domain does not exist.
    """
    granted = [text for role in written for text in grants(role, domain, action)]
    if granted and not yes:
        with known_domain(svc.client, domain):
            look()
        svc.ask(" ".join([*granted, "Continue?"]))


def _note_labels(svc: Context, written: Iterable[WrittenRole]) -> None:
    """If resource IDs have labels, print a note that the service does not keep these labels."""
    labels = dict.fromkeys(label for role in written for label in role.role.resource_ids or {})
    if lost := ", ".join(f"'{label}'" for label in labels if label not in ("*", "ids")):
        svc.diagnostics.note(
            f"a service keeps the integers of resourceIds without their labels: they come back as 'ids', not as {lost}"
        )


def _require(svc: Context, domain: str, roles: Iterable[str]) -> None:
    """Raise NotFound, with a hint, if one of the roles does not exist."""
    for role in roles:
        with known_role(svc.client, domain, role):
            require(svc.client, domain, role)
