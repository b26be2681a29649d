"""Domains, roles, price plans and accounts. The interface has provisioning operations that change these objects."""
