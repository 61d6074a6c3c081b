"""The paper's experiments, made again. Not part of the installed package.

``python -m paper adult`` fits the models of an experiment, ``python -m paper all`` those of all;
the report is ``docs/reproduction.md``. Read in this order: ``configs`` and `experiments` (which
runs), `data` (on which tables), `models` with ``baselines`` (what is fitted), `measures` and
`costs` (what is measured), `runs` (how records come about), `results`, `tables`, `figures` and
`claims` (what they say), `report`.
"""
