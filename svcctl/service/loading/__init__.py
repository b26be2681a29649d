"""How events get in: files that are loaded, and demo events."""
