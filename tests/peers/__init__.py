"""Real servers on 127.0.0.1 (Kafka, S3, HDFS, PostgreSQL), for tests that cannot rely on a stand-in.

A test talks to a peer as the service does: over the peer's own protocol, through the client library of its destination.
Where possible, the test reads the data back in another way, so that a mistake of that library cannot hide itself.
"""
