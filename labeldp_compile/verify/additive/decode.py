"""The additive randomizer in the constants of a graph.

Its weights are read from the very alias tables that the graph gathers from. Everything that the
claims rest on is demanded here: where the tails are folded, and that float64 and int64 are exact.
"""

from __future__ import annotations

from fractions import Fraction

import onnx

from labeldp_compile.artifact.additive_graph import MAX_PERIOD
from labeldp_compile.artifact.graph import INT64
from labeldp_compile.randomizer import AdditiveRandomizer, CategoricalDomain, Domain
from labeldp_compile.verify.alias_layout import Entries, read_tables, read_word_bits
from labeldp_compile.verify.decode import Constants, demand

# t·unit is rounded once and the sum with the origin once more: below this it stays finite.
_ROUNDS_TO_INFINITY = 2**1024 - 2**970
_PRODUCT_ROUNDED_UP = 1 + Fraction(1, 2**53)


def read_additive(
    model: onnx.ModelProto, domain: Domain
) -> tuple[AdditiveRandomizer, Entries, Entries]:
    """The randomizer, and the entries [1, 2^c] of its blocks and [2, 2^c] of its shapes."""
    demand(not isinstance(domain, CategoricalDomain), "noise is added to numbers, not categories")
    assert not isinstance(domain, CategoricalDomain)
    constants = Constants(model)
    word_bits = read_word_bits(constants, "block")
    demand(read_word_bits(constants, "shape") == word_bits, "the two word sizes")

    (zero_block,) = constants.integers("zero_block", INT64, 0)
    (spacing,) = constants.integers("spacing", INT64, 0)
    (period,) = constants.integers("period", INT64, 0)
    (low,) = constants.integers("low", INT64, 0)
    (high,) = constants.integers("high", INT64, 0)
    reach = zero_block - 1
    demand(reach >= 1, "the number of blocks")
    demand(domain.size >= 2 and spacing >= 1, "the spacing of the labels")
    demand(period == (domain.size - 1) * spacing <= MAX_PERIOD, "the period of the noise")
    # Products and sums stay below 2^55 in int64, points below 2^52 are exact in float64.
    demand(reach * period < 2**52, "the reach of the noise")
    # Noise of the outermost blocks lies at or beyond reach·period, on either side of zero.
    folded = reach * period
    demand(period - folded <= low <= high <= folded, "the ends, where every label is clamped")

    # A step that onnxruntime would take for 1 stands there twice as large, and is halved.
    doubled = constants.has("unit_doubled")
    unit = constants.number("unit_doubled") / 2 if doubled else constants.number("unit")
    origin = constants.number("origin")
    demand(unit > 0, "the value of a lattice step")
    demand(origin == float(domain.min), "the value of the lowest label")
    furthest = max(abs(low), abs(high)) * Fraction(unit) * _PRODUCT_ROUNDED_UP
    demand(furthest + abs(Fraction(origin)) < _ROUNDS_TO_INFINITY, "outputs that are not finite")

    block_table, (blocks,) = read_tables(constants, "block_entries", 1, 2 * zero_block, word_bits)
    shape_tables, shapes = read_tables(constants, "shape_entries", 2, period, word_bits)
    randomizer = AdditiveRandomizer(
        word_bits=word_bits,
        labels=domain.size,
        spacing=spacing,
        blocks=tuple(blocks),
        shapes=(tuple(shapes[0]), tuple(shapes[1])),
        low=low,
        high=high,
        origin=origin,
        unit=unit,
    )
    return randomizer, block_table, shape_tables
