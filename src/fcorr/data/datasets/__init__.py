"""Real tables that others publish: ``load_*`` reads them from a folder, ``fetch_*`` fills it.

The folder is `data_home`, else the one that the environment variable ``FCORR_DATA`` names, else
``fcorr`` in the user's cache directory. Only ``fetch_*`` uses the network.
"""
