"""Profiles. A profile names the service to connect to, and contains credentials and default options.

The value of a setting is looked up in this order: flag, environment, profile, default.
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
