"""Files on disk: the workspace, the agent's own files, and the index of watched files."""
