"""Bringing a lost memory back, on a machine where no daemon runs."""
