"""The verb `apply`: compare the desired state in files with the service, and make the steps to the desired state."""
