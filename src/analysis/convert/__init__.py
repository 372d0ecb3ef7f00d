"""Where model files come from, what a file says of itself, and how one becomes another."""
