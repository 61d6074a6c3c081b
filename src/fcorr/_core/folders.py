"""Folders of the user's own."""

import os
import sys
from pathlib import Path


def user_cache() -> Path:
    """Return the folder for what can be made or fetched again; it may not exist yet."""
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "fcorr"
