"""Domains, roles, plans and accounts: the state behind the provisioning operations."""
