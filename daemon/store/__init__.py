"""One agent's folder on disk: the database that is the truth, and the files that show it."""
