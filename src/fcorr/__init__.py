"""fcorr."""
