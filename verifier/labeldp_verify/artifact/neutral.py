"""Constants that onnxruntime takes for 0 or 1, though they are neither.

Its NoopElimination leaves out x + 0, x − 0, x·1 and x/1, and looks at a float64 constant in
float32 when it decides that: 1.000000000001 is 1 there, and 1e-50 is 0. A node with such a constant
is never computed, so no graph may hold one.
"""

from __future__ import annotations

import ctypes

_LEAST_NORMAL = 2.0**-126  # of float32; what lies below, some platforms flush to 0
NEUTRAL = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0}


def is_taken_for(number: float, neutral: float) -> bool:
    """True if float32 cannot tell ``number`` from the neutral one, which it is not."""
    rounded = ctypes.c_float(number).value if abs(number) >= _LEAST_NORMAL else 0.0
    return number != neutral and rounded == neutral


def vanishes(op_type: str, number: float) -> bool:
    """True if onnxruntime would leave out this operation with this constant, wrongly."""
    return op_type in NEUTRAL and is_taken_for(number, NEUTRAL[op_type])
