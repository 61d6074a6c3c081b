"""fcorr.cli."""
