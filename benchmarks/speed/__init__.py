"""How fast FCorr trains and scores, and in how much memory, side by side with other models.

Read in this order: what is asked (``plan``), the rows (``data``), the models (``models``), the
clocks (``measure``, ``memory``), and what is shown (``tables``, ``plot``).
``make bench-speed`` runs it; ``python -m benchmarks.speed --quick`` is a smoke run.
"""
