"""From records to a report: tables and figures with the paper's own figures beside ours.

Read in this order: `paper` (what the paper prints), `items` (what a report is made of), `selecting`
and `cells` (which records a row is made of, how it is written), `tables` with `cost_tables` and
`significance`, `figures`, `results` and `claims`, `document`.
"""

from fcorr.reproduce.report.document import write_document

__all__ = ["write_document"]
