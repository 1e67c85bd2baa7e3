"""What an artifact does: the matrix Pr[output | label], and what follows from it."""

from labeldp_verify.usefulness import is_unbiased, sample
from labeldp_verify.verified import Decoded

from labeldp_compile.tools.inspection.document import inspection_json
from labeldp_compile.tools.inspection.facts import (
    LabelFacts,
    NoiseFacts,
    OutputFacts,
    answers_with_sets,
    decode_any,
    decode_artifact,
    find_group,
    find_labels,
    held,
    label_at,
    label_facts,
    label_name,
    noise_facts,
    one_table,
    output_facts,
    readable,
)

__all__ = [
    "Decoded",
    "LabelFacts",
    "NoiseFacts",
    "OutputFacts",
    "answers_with_sets",
    "decode_any",
    "decode_artifact",
    "find_group",
    "find_labels",
    "held",
    "inspection_json",
    "is_unbiased",
    "label_at",
    "label_facts",
    "label_name",
    "noise_facts",
    "one_table",
    "output_facts",
    "readable",
    "sample",
]
