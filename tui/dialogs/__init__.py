"""Questions that lie over the view until they are answered."""
