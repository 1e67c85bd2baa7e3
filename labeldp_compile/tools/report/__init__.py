"""One artifact as a page and as a picture, for people who must decide whether to trust it.

Every number comes from the certificate of a file that verified, or from the integers inside it by
``randomizer.probabilities`` and ``inspection``. Read in this order: ``findings.py`` (what is shown,
once it verified), ``posterior.py`` and ``comparison.py`` (what is derived; the latter compiles, and
only where it is asked for), ``matrix.py`` and ``plots.py`` (pictures), ``page.py`` with its
template ``report.html``, and ``picture.py``.
"""
