"""The boundary vectors of the file: does this platform compute what the integers demand?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Run = Callable[[NDArray[Any], NDArray[np.uint64]], NDArray[Any]]


def run_self_test(run: Run, vectors: dict[str, Any], element_type: str, words: int) -> bool:
    """True if ``run(labels, words)`` gives every expected output, to the last bit."""
    labels: NDArray[Any]
    try:
        texts, expected = vectors["labels"], vectors["outputs"]
        if element_type == "string":
            labels = np.array(texts, dtype=object)
        else:
            parse = int if element_type == "int64" else float
            labels = np.array([parse(text) for text in texts], dtype=element_type)
        entropy = np.array([[int(w, 16) for w in row] for row in vectors["words"]], np.uint64)
        got = run(labels, entropy[:, 0] if words == 1 else entropy).tolist()
        texts_got = [repr(v) if isinstance(v, float) else str(v) for v in got]
    except Exception:  # vectors of another shape; onnxruntime raises types of its own
        return False
    return len(expected) > 0 and bool(texts_got == expected)
