"""What happens by itself: schedules and their runs, and what each step of a run does."""
