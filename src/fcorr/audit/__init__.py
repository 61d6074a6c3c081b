"""What people look at: what was measured of models, side by side, and charts.

`measure` says what is known of any model on rows; `report` is the audit, which `words` says in
sentences and `page` shows, with the model inside it (`whatif`); `comparison` puts a model beside
the unconstrained one and the one with the column removed; `tables` writes numbers; `displays`
draws; `demo` shows it.
"""
