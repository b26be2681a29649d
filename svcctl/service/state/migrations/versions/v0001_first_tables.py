"""Create the tables that are missing of those that svcctl had before there were versions."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

TABLES = (
    """create table if not exists accounts (
        api_key text primary key,
        api_secret text not null,
        token text unique,
        domain text not null,
        administrator integer not null default 0,
        reseller text
    ) strict""",
    """create table if not exists resellers (
        name text primary key,
        include_all_available_apps integer not null default 1
    ) strict""",
    """create table if not exists features (
        kind text not null check (kind in ('policy', 'application')),
        name text not null,
        generic integer not null default 0,
        primary key (kind, name)
    ) strict""",
    """create table if not exists plans (
        reseller text not null references resellers,
        name text not null,
        time real,
        volume real,
        primary key (reseller, name)
    ) strict""",
    """create table if not exists plan_features (
        reseller text not null,
        plan text not null,
        kind text not null,
        name text not null,
        primary key (reseller, plan, kind, name),
        foreign key (reseller, plan) references plans on delete cascade,
        foreign key (kind, name) references features on delete cascade
    ) strict""",
    """create table if not exists domains (
        id integer primary key,
        name text not null,
        reseller text references resellers,
        plan text,
        time real,
        volume real,
        status text not null,
        deleted_at integer
    ) strict""",
    "create unique index if not exists one_living_domain_per_name on domains (name) where deleted_at is null",
    """create table if not exists domain_applications (
        domain integer not null references domains,
        name text not null,
        primary key (domain, name)
    ) strict""",
    """create table if not exists users (
        email text primary key
    ) strict""",
    """create table if not exists members (
        domain integer not null references domains,
        user text not null references users,
        role text not null,
        owner integer not null,
        primary key (domain, user)
    ) strict""",
    """create table if not exists roles (
        domain integer not null references domains,
        name text not null,
        description text,
        policies text not null,
        applications text not null,
        resource_ids text not null,
        finder_name text,
        default_application text,
        primary key (domain, name)
    ) strict""",
    """create table if not exists queries (
        id text primary key,
        text text not null
    ) strict""",
    """create table if not exists jobs (
        id text primary key,
        owner text not null,
        status text not null,
        type text not null,
        friendly_name text not null,
        query text not null,
        request text not null,
        params text not null,
        sent integer not null default 0,
        last_datetime integer not null default 0,
        checkpoint text not null default '{}',
        error text not null default '[]'
    ) strict""",
    "create index if not exists jobs_by_owner on jobs (owner)",
)


def upgrade() -> None:
    for statement in TABLES:
        op.execute(statement)
