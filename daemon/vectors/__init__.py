"""The vectors of an agent's texts: encoding in the background, their file, and nearness."""
