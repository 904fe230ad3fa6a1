"""Language without a model: extracts what is worth keeping from a text, and compares texts."""
