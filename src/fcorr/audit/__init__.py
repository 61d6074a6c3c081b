"""What people look at: what was measured of models, side by side, and charts.

`measure` says what is known of any model on rows; `report` is the audit, which `page` writes in
sentences, as a card and as a page, with the model inside it (`whatif`), and tables as text;
`proxies` looks for columns that stand in for the sensitive one; `displays` draws.
"""
