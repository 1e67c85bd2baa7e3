"""The random words of a graph, from its input ``entropy``.

Files can be portable: hosts differ in the integers that they can feed, so a word of 64
bits comes as two or three *limbs* in int64, and the graph takes the lowest 31 bits of each. A host
may draw limbs as it likes, signed or not, as long as these bits are uniform. All other files take
words as they are, in uint64, in two thirds of the time.

    word = limb 1's 31 bits · 2^33 + limb 2's 31 bits · 2^2 + limb 3's highest 2 of its 31 bits
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.graph.nodes import INT64, UINT64, Graph

LIMB_BITS = 31
_DROPPED = 64 - LIMB_BITS  # by a shift to the left


def limbs_per_word(word_bits: int) -> int:
    """How many limbs hold the highest ``word_bits`` of a word."""
    return 2 if word_bits <= 2 * LIMB_BITS else 3


def in_limbs(words: NDArray[np.uint64], limbs: int) -> NDArray[np.int64]:
    """[n, w·l] the limbs of words [n, w], each below 2^31."""
    parts = [words >> np.uint64(33), words >> np.uint64(2), words << np.uint64(29)][:limbs]
    mask = np.uint64((1 << LIMB_BITS) - 1)
    return (np.stack(parts, axis=2) & mask).astype(np.int64).reshape(len(words), -1)


def add_words(graph: Graph, names: Sequence[str], shape: str, limbs: int) -> list[str]:
    """Declare ``entropy`` and add the nodes to the words [N] (uint64) of these names.

    ``shape`` names the shape of the labels, so that a wrong number of words is an error, and no
    word is ever shared by several labels. ``limbs`` are those of a word; 0 takes whole words.
    """
    if not limbs:
        return _columns(graph, names, shape, UINT64, "words_per_label", "word_table")
    parts = [f"{name}_limb_{i + 1}" for name in names for i in range(limbs)]
    found = _columns(graph, parts, shape, INT64, "limbs_per_label", "limb_table")
    shift = graph.scalar("limb_shift", UINT64, _DROPPED)
    places = [graph.scalar(f"limb_{i + 1}_place", UINT64, LIMB_BITS * i) for i in range(1, limbs)]
    return [
        _joined(graph, name, found[i * limbs : (i + 1) * limbs], shift, places)
        for i, name in enumerate(names)
    ]


def _columns(
    graph: Graph, names: Sequence[str], shape: str, element: int, width: str, table: str
) -> list[str]:
    """The columns [N] of ``entropy``, which is [N] or [N, their number]."""
    count = len(names)
    entropy = graph.input("entropy", element, ["N"] if count == 1 else ["N", count])
    if count == 1:
        return [graph.node("Reshape", [entropy, shape], names[0], allowzero=1)]
    size = graph.vector(width, INT64, [count])
    full_shape = graph.node("Concat", [shape, size], "entropy_shape", axis=0)
    whole = graph.node("Reshape", [entropy, full_shape], table, allowzero=1)
    # Split copies columns ten times as fast as Gather or Slice do.
    columns = graph.split(whole, [f"{name}_column" for name in names], axis=1)
    return [
        graph.node("Reshape", [column, shape], name, allowzero=1)
        for column, name in zip(columns, names, strict=True)
    ]


def _joined(graph: Graph, name: str, limbs: Sequence[str], shift: str, places: list[str]) -> str:
    """The word [N] of limbs [N].

    Additions are in int64, as onnxruntime has none in uint64: the first limb may be negative there,
    and the others are below 2^33, so nothing overflows.
    """
    total = ""
    for limb, place in zip(limbs, ["", *places], strict=True):
        bits = graph.node("Cast", [limb], f"{limb}_bits", to=UINT64)
        bits = graph.node("BitShift", [bits, shift], f"{limb}_raised", direction="LEFT")
        if place:
            bits = graph.node("BitShift", [bits, place], f"{limb}_placed", direction="RIGHT")
        part = graph.node("Cast", [bits], f"{limb}_part", to=INT64)
        total = graph.node("Add", [total, part], f"{limb}_sum") if total else part
    return graph.node("Cast", [total], name, to=UINT64)
