"""The search for a model: a sweep over a grid of arguments and seeds, and the choice."""
