"""``python -m fcorr``: the command line."""

from fcorr.cli import main

main()
