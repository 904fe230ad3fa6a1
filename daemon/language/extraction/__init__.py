"""What is worth keeping of a talk, and in which words, by rules."""
