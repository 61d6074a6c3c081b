"""fcorr.metrics."""
