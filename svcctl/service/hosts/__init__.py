"""The hosts that the service may connect to for its customers, and restrictions for libraries that open connections.

allowed_hosts.py    the rules of SVCCTL_DESTINATIONS_ALLOWED
proxy.py            connections of a library to allowed hosts only
kafka_brokers.py    the brokers of a Kafka cluster
"""
