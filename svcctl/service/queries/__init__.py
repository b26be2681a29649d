"""Queries: as they are asked, the steps that answer them, and the ones that are saved."""
