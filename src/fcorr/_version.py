"""The version, in one place: the package, the command line and every model file read it here."""

__version__ = "0.2.0"
