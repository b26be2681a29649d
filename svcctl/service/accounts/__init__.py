"""Domains, roles, price plans and accounts, which the provisioning operations of the interface change."""
