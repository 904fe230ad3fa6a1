"""Restoring memories from a replica or an archive, and verifying that it would work."""
