"""What every room stands on: errors that help, optional imports, randomness, whole files."""
