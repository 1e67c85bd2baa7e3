"""One artifact as a page, for people who must decide whether to trust it.

Every number comes from the certificate of a verified file, or from the integers in that file
(``inspection``). Read in this order: ``findings.py`` (what is shown), ``posterior.py`` (what is
derived), ``matrix.py`` and ``plots.py`` (pictures), ``page.py`` with its template ``report.html``,
and ``registry.py``.
"""
