"""fcorr.training."""
