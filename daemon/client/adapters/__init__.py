"""Interfaces of other libraries over the daemon; each module loads its library."""
