"""Jobs: their states, how they are stored, and the delivery of their rows."""
