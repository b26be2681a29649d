"""Jobs: their states, and the delivery of their rows."""
