"""The inputs of commands: query texts, destinations, the IDs and states of jobs, and YAML files."""
