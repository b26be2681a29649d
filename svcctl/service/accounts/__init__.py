"""Domains, roles, price plans and accounts. The provisioning operations of the interface change them."""
