"""Parts that several views share."""
