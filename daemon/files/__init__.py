"""The agent's workspace: the notes and logs in its `memory/`, in step with the database."""
