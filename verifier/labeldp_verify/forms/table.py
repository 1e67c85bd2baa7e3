"""The table randomizer: one distribution over the outputs for each label, in whole counts.

The exact form for mechanisms without a structure to use, such as the exponential mechanism. Of the
2^B words of label y, ``counts[y][i]`` answer with ``values[i]``.
"""

from dataclasses import dataclass
from typing import Any

from labeldp_verify.forms.sets import ClassSets
from labeldp_verify.forms.window import Output

TABLE_WORD_BITS = 64


@dataclass(frozen=True)
class TableRandomizer:
    """The integers of a table randomizer; pure data, checked by ``check_table``.

    Attributes:
        word_bits: B, the number of random bits that one label consumes.
        counts: [k][m] words of each label that lead to each output, each ≥ 1; rows sum to 2^B.
        values: [m] distinct outputs: float64 numbers in increasing order, or categories.
        sets: the classes of each output, where outputs are sets; ``values`` are then their numbers
            0 … m − 1.
    """

    word_bits: int
    counts: tuple[tuple[int, ...], ...]
    values: tuple[Output, ...]
    sets: ClassSets | None = None

    form = "table"
    words_per_label = 1

    @property
    def words(self) -> int:
        """2^B, the number of equally likely words."""
        return 1 << self.word_bits

    @property
    def outputs(self) -> int:
        """Number of distinct outputs."""
        return len(self.values)

    def to_json(self) -> dict[str, Any]:
        """The integers that decide what the randomizer does, for a digest."""
        return {
            "form": self.form,
            "word_bits": self.word_bits,
            "counts": [list(row) for row in self.counts],
            "values": [v.hex() if isinstance(v, float) else v for v in self.values],
            **({} if self.sets is None else {"sets": self.sets.to_hex()}),
        }


def check_table(randomizer: TableRandomizer) -> None:
    """Raise ValueError unless the integers form a table randomizer."""
    r = randomizer
    if not 1 <= r.word_bits <= TABLE_WORD_BITS:
        raise ValueError(f"word_bits must lie in 1 … {TABLE_WORD_BITS}, got {r.word_bits}")
    if not r.counts or not r.values or any(len(row) != len(r.values) for row in r.counts):
        raise ValueError("every label needs one count for each output")
    if any(min(row) < 1 or sum(row) != r.words for row in r.counts):
        raise ValueError(f"counts must be at least 1 and sum to 2^{r.word_bits} for every label")
