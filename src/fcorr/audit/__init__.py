"""What people look at: what was measured of models, side by side and over a grid, and figures.

`measuring` and `certified` say what is known of one model on rows; `comparison` puts it beside the
unconstrained one and the one with the column removed; `sweep` goes over a grid of arguments and
chooses; `figures` draws plain data; `demo` shows it all.
"""
