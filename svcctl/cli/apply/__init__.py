"""The desired state: what files describe, compared with what is there, and the steps from one to the other."""
