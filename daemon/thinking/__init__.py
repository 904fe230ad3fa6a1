"""What a model is used for; and for each of it the way without one."""
