"""fcorr.nn."""
