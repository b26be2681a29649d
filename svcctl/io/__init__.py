"""Files, bytes and the machine: what every part needs of the operating system, and nothing about the service."""
