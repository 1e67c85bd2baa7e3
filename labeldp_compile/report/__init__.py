"""One artifact as a page and as a picture, for people who must decide whether to trust it.

Every number comes from the certificate of a file that verified, or from the integers inside it by
``randomizer.probabilities`` and ``inspection``. Read in this order: ``findings.py`` (what is shown,
once it verified), the modules beside it (what is derived: the heat map, posteriors, comparison,
composition), ``plots`` (pictures of it), ``sections`` (HTML of it), ``page.py`` and ``picture.py``.
"""
