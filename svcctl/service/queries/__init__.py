"""Queries: as they are asked, the steps that answer them, whose turn it is, and the ones that are saved."""
