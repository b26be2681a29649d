"""The workers of a run: how windows are handed out, fetched, paced and retried, here or in a cluster."""
