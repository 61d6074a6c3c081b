"""fcorr.data."""
