"""Random words as portable files take them: two or three int64 limbs a word.

The graph takes the lowest 31 bits of each limb, so hosts may feed integers of any sign and size.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_SHIFTS = (33, 2)  # to the right, of the first limbs; the third is the last 2 bits, raised by 29
_MASK = np.uint64(2**31 - 1)


def limbs_of(entropy: Any, stated: dict[str, Any]) -> tuple[int, int]:
    """The words of a label, and the limbs of a word: 0 where words are whole.

    ``entropy`` is the graph's input, ``stated`` the certificate. ValueError or KeyError for others.
    """
    width = int(entropy.shape[1]) if len(entropy.shape) == 2 else 1
    if entropy.type == "tensor(uint64)":
        return width, 0
    limbs = stated["portable"]["limbs_per_word"]
    known = type(limbs) is int and limbs in (2, 3) and width % limbs == 0
    if entropy.type != "tensor(int64)" or not known:
        raise ValueError("words of an unknown kind")
    return width // limbs, limbs


def in_limbs(words: NDArray[np.uint64], limbs: int) -> NDArray[Any]:
    """[n, w·limbs] the limbs (int64) of words [n] or [n, w]; the words if ``limbs`` is 0."""
    if not limbs:
        return words
    found = np.empty((*words.shape, limbs), np.uint64)
    for i, shift in enumerate(_SHIFTS):
        np.right_shift(words, np.uint64(shift), out=found[..., i])
    if limbs > len(_SHIFTS):
        np.left_shift(words, np.uint64(29), out=found[..., -1])
    found &= _MASK
    return found.view(np.int64).reshape(len(words), -1)
