"""A verified artifact as a Coq file: its integers, and the theorem that they are private.

``theory`` finds the general proofs (``proofs/``), ``script`` writes the part about one file with
the template ``artifact.v.jinja``, and ``coqc`` runs Coq on both.
"""

from labeldp_compile.export.coq.command import target

__all__ = ["target"]
