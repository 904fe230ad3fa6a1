"""Finds what is wrong on a device, and says what to do. Reads only, with or without a daemon."""
