"""Memories on other devices: replication, restore, archives, and the proof that they are whole."""
