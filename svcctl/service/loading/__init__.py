"""Loads events from files, and makes demo events."""
