"""Queries as they are asked, saved and continued."""
