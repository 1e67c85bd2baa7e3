"""A verified artifact as a Coq file: its integers, and the theorem that they are private.

``theory`` finds the general proofs (``proofs/``), ``script`` writes what is about one file, into
the template ``artifact.v.jinja``, and ``coq`` has both checked.
"""
