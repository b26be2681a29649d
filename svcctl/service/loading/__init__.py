"""Loading events: from files, and demo events."""
