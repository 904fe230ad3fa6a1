"""The domain: what a memory is and how it ages. Pure: no I/O, no clock."""
