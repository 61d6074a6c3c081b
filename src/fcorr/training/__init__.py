"""Training: what is minimised, the loop that does it, and what is shown and kept of it."""
