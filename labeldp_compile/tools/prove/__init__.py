"""A verified artifact as a Coq file: its integers, and the theorem that they are private.

``theory`` finds the general proofs (``proofs/``), ``script`` writes what is about one file, ``coq``
has both checked.
"""

from labeldp_compile.tools.prove.coq import CoqAnswer, coq_version, run_coq
from labeldp_compile.tools.prove.script import MAX_INTEGERS, Proof, proof_of
from labeldp_compile.tools.prove.terms import size_of

__all__ = [
    "MAX_INTEGERS",
    "CoqAnswer",
    "Proof",
    "coq_version",
    "proof_of",
    "run_coq",
    "size_of",
]
