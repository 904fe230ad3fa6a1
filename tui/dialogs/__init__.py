"""Dialogs over the view."""
