"""Replication of agents' memories: accounts, and the loops that replicate."""
