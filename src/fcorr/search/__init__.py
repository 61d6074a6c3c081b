"""The search for a model: a sweep over a grid of arguments and seeds, and the choice.

`sweep` goes over the grid, measures by `fcorr.audit.measure`, and chooses; its runs are in `runs`.
"""
