"""Tasks, log, problems, signals and places: what the process needs to run."""
