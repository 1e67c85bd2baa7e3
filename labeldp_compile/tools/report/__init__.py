"""One artifact as a page, for people who must decide whether to trust it.

Every number comes from the certificate of a file that verified, or from the integers inside it by
``randomizer.probabilities`` and ``inspection``. Read in this order: ``findings.py`` (what is shown,
once it verified), ``posterior.py`` (what is derived), ``matrix.py`` and ``plots.py`` (pictures),
``page.py`` with its template ``report.html``, and ``registry.py``.
"""
