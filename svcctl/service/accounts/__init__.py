"""Domains, roles, price plans and accounts. The HTTP interface has operations for domains and roles."""
