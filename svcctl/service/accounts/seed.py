"""The initial contents of a service's state: the local domain, and a demo reseller with plans and features.

The state is the database of accounts, roles and jobs. Its initial contents are stored once, in the transaction that
creates the tables. So later changes and deletions are kept. The accounts of the built-in profiles are stored at every
start, because their credentials are in a separate file.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from svcctl.errors import Locked, Unavailable, UsageError
from svcctl.io import extras
from svcctl.profiles.settings import BUILT_IN
from svcctl.service import process
from svcctl.service.accounts import accounts, domains, price_plans, users
from svcctl.service.accounts.accounts import Account
from svcctl.service.accounts.price_plans import Feature, PricePlan, Reseller
from svcctl.service.settings import STATE, STATE_PASSWORD_FILE
from svcctl.service.state.database import Database, StateUnavailable
from svcctl.service.state.store import Store

LOCAL_DOMAIN = "local"
LOCAL_OWNER = "owner@localhost"
RESELLER = "demo"

FEATURES = (
    Feature("policy", "Search", generic=True),
    Feature("policy", "Alerts"),
    Feature("policy", "Lookups"),
    Feature("policy", "Administration"),
    Feature("application", "explorer", generic=True),
    Feature("application", "dashboards"),
    Feature("application", "reports"),
)
PLANS = (
    PricePlan(RESELLER, "trial", None, None, ("Alerts",), ("dashboards",)),
    PricePlan(RESELLER, "basic", 30, 10, ("Alerts", "Lookups"), ("dashboards",)),
    PricePlan(RESELLER, "full", 365, 1000, ("Alerts", "Lookups", "Administration"), ("dashboards", "reports")),
)


def open_store(
    files: process.ServiceFiles,
    environment: Mapping[str, str] | None = None,
    *,
    state: str | None = None,
    is_service: bool = False,
) -> Store:
    """Open the database with the state of the local service. A new database gets its initial contents.

    Other processes may open the database at the same time. The database is a PostgreSQL database if `state` or the
    environment has its URL. Otherwise, the database is a file. `is_service` means that this process holds the service's
    lock. Raises Unavailable if the database cannot be read or written.
    """
    files.make()
    credentials = process.all_credentials(files)

    def fill(store: Store) -> None:
        catalog(store)
        _profiles(store, credentials, files.directory)

    place = _database(environment or {}, state) or files.state
    before_upgrade = None if is_service or not isinstance(place, Path) else partial(_require_no_service, files)
    try:
        store = Store(place, fill=fill, before_upgrade=before_upgrade)
        _profiles(store, credentials, files.directory)
    except StateUnavailable as error:
        raise Unavailable(error.detail, hint=error.advice) from None
    return store


def _database(environment: Mapping[str, str], state: str | None) -> Database | None:
    url = state or STATE.read(environment)
    if url is None:
        return None
    if not url.startswith(("postgresql://", "postgres://")):
        source = "--state" if state else STATE.environment
        raise UsageError(
            f"{source} is not the URL of a PostgreSQL database",
            hint="such as postgresql://user@host:5432/name",
        )
    extras.need("postgres", "a state in PostgreSQL")
    from svcctl.service.state.postgresql import database_of

    return database_of(url, STATE_PASSWORD_FILE.read(environment), may_hold_password=state is None)


def _require_no_service(files: process.ServiceFiles) -> None:
    """Raise Locked if the service runs. An upgrade of the database would change tables that a running service uses."""
    if process.running_process(files) is not None:
        raise Locked(
            f"state file {files.state} needs an upgrade, and the local service of an older svcctl is running",
            hint="stop it first",
            reason="state-in-use",
        )


def catalog(store: Store) -> None:
    """Store the local domain with its owner, and the demo reseller with its plans, policies and applications."""
    with store.transaction():
        domains.put_provider_domain(store, LOCAL_DOMAIN)
        users.assign(store, LOCAL_DOMAIN, LOCAL_OWNER, users.OWNER)
        price_plans.put_reseller(store, Reseller(RESELLER))
        for feature in FEATURES:
            price_plans.put_feature(store, feature)
        for plan in PLANS:
            price_plans.put_plan(store, plan)


def _profiles(store: Store, credentials: Sequence[Mapping[str, str]], directory: Path) -> None:
    """Store the accounts of the built-in profiles.

    The credentials of an account are `api_key`, `api_secret` and `token`. The name of each account contains the host
    and the directory of the credentials file.
    """
    where = os.fsencode(f"{socket.gethostname()}:{directory}").decode("utf-8", "replace")
    own_name, reseller_name = (f"profile {profile} of {where}" for profile in BUILT_IN)
    own, reseller = ((made["api_key"], made["api_secret"], made["token"]) for made in credentials)
    with store.transaction():
        accounts.put(store, Account(*own, LOCAL_DOMAIN, administrator=True, name=own_name))
        accounts.put(store, Account(*reseller, "", reseller=RESELLER, name=reseller_name))
