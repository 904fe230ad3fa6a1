"""The memory daemon: domain, store, recall, API and command line."""
