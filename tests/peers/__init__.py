"""Real Kafka, S3 and HDFS on 127.0.0.1, for tests that must not believe a stand-in.

A peer is a server that a test talks to as the service does: over its own protocol, through the client library of its
destination. What arrived is read back another way, so that a mistake of that library cannot hide itself.
"""
