"""The inputs of commands: query texts, destinations, IDs and states of jobs, and YAML files of jobs and roles."""
