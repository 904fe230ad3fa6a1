"""What the rows of each kind hold, and the tables that follow from them."""
