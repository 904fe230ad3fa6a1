"""Bringing memories back: from a replica, from an archive; and proving that it would work."""
