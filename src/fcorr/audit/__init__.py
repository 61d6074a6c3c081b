"""fcorr.audit."""
