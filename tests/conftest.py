"""Fixtures that every test module may use."""
