"""Jobs: their statuses, their storage in the database, and the delivery of their rows.

A job is a query whose rows go to a destination, such as Kafka or S3.
"""
