"""The verb `apply`: compare the desired state in files with the service, and change the service accordingly."""
