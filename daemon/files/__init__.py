"""The workspace on disk: walking it, and keeping its notes in step with the database."""
