"""What an artifact does: the matrix Pr[output | label], and what follows from it."""

from labeldp_verify.usefulness import is_unbiased, sample
from labeldp_verify.verified import Decoded

from labeldp_compile.tools.inspection.document import inspection_json
from labeldp_compile.tools.inspection.facts import (
    LabelFacts,
    NoiseFacts,
    OutputFacts,
    decode_artifact,
    find_labels,
    label_at,
    label_facts,
    noise_facts,
    output_facts,
)

__all__ = [
    "Decoded",
    "LabelFacts",
    "NoiseFacts",
    "OutputFacts",
    "decode_artifact",
    "find_labels",
    "inspection_json",
    "is_unbiased",
    "label_at",
    "label_facts",
    "noise_facts",
    "output_facts",
    "sample",
]
