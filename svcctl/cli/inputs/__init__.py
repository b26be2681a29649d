"""The inputs of commands: query texts, destinations, role files, IDs of jobs."""
