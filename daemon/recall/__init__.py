"""Recall: from a question in words to ranked, explained memories."""
