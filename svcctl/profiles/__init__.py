"""Profiles: the service to connect to, with credentials and defaults.

A setting is looked up in one order: flag, environment, profile, default. Each value remembers its source.
"""

from svcctl.profiles.resolve import Profile, misspelled_variables, resolve
from svcctl.profiles.settings import BUILT_IN, LOCAL, PROFILE_SETTINGS
from svcctl.profiles.store import ProfileStore, default_store

__all__ = [
    "BUILT_IN",
    "LOCAL",
    "PROFILE_SETTINGS",
    "Profile",
    "ProfileStore",
    "default_store",
    "misspelled_variables",
    "resolve",
]
