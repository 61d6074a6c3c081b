"""Real tables that others publish: ``load_*`` reads them from a folder, ``fetch_*`` fills it.

The folder is `data_home`, else the one that the environment variable ``FCORR_DATA`` names, else
``fcorr`` in the user's cache directory. Only ``fetch_*`` uses the network.
"""

from fcorr.data.datasets._dataset import Dataset, Part
from fcorr.data.datasets.adult import fetch_adult, load_adult
from fcorr.data.datasets.baf import fetch_baf, load_baf
from fcorr.data.datasets.motor import (
    fetch_bemtpl97,
    fetch_fremtpl2,
    load_bemtpl97,
    load_fremtpl2,
)

__all__ = [
    "Dataset",
    "Part",
    "fetch_adult",
    "fetch_baf",
    "fetch_bemtpl97",
    "fetch_fremtpl2",
    "load_adult",
    "load_baf",
    "load_bemtpl97",
    "load_fremtpl2",
]
