"""The window randomizer: the exact form of every two-level mechanism.

Output i owns ``base[i]`` consecutive integers of the base line [0, T), T = Σ base. Behind it lies
the extra line [T, T + Σ lengths), cut into segments that each belong to one output. With B random
bits, X = 2^B − T and a uniform word u in [0, 2^B), label y draws

    t = u + (offsets[y] if u >= T else 0)

and answers with the value whose segment contains t. So a label only chooses where its window of X
integers lies on the extra line, and

    Pr[i | y] = (base[i] + |window(y) ∩ segments of i|) / 2^B,

whose rows sum to one by construction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

Output = float | str | int
MAX_WORD_BITS = 62


@dataclass(frozen=True)
class Segment:
    """``length`` consecutive integers of the extra line that belong to output ``output``."""

    length: int
    output: int


@dataclass(frozen=True)
class WindowRandomizer:
    """The integers of a window randomizer; pure data, checked by ``check_form``.

    Attributes:
        word_bits: B, the number of random bits that one label consumes.
        base: [m] base weights, each ≥ 1, in the order of ``values``.
        extra: [L] segments of the extra line.
        offsets: [k] start of each label's window on the extra line, at least 0; the furthest
            window ends where the extra line ends, so that a file needs to state no length for it.
        values: [m] distinct outputs: float64 numbers in increasing order, or categories.
    """

    word_bits: int
    base: tuple[int, ...]
    extra: tuple[Segment, ...]
    offsets: tuple[int, ...]
    values: tuple[Output, ...]

    form = "window"
    words_per_label = 1

    @property
    def words(self) -> int:
        """2^B, the number of equally likely words."""
        return 1 << self.word_bits

    @property
    def outputs(self) -> int:
        """Number of distinct outputs."""
        return len(self.values)

    @cached_property
    def base_total(self) -> int:
        """T, the length of the base line."""
        return sum(self.base)

    @cached_property
    def window(self) -> int:
        """X = 2^B − T, the length of every label's window."""
        return self.words - self.base_total

    @cached_property
    def extra_total(self) -> int:
        """Σ lengths, the length of the extra line."""
        return sum(segment.length for segment in self.extra)

    def boundaries(self) -> list[int]:
        """[m + L + 1] ends of all segments on the common line, from 0 to T + Σ lengths."""
        lengths = [*self.base, *(segment.length for segment in self.extra)]
        return list(accumulate(lengths, initial=0))

    def segment_outputs(self) -> list[int]:
        """[m + L] the output of each segment, base line first."""
        return [*range(len(self.base)), *(segment.output for segment in self.extra)]

    def to_json(self) -> dict[str, Any]:
        """The integers that decide what the randomizer does, for a digest."""
        return {
            "form": self.form,
            "word_bits": self.word_bits,
            "base": list(self.base),
            "extra": [[segment.length, segment.output] for segment in self.extra],
            "offsets": list(self.offsets),
            "values": [v.hex() if isinstance(v, float) else v for v in self.values],
        }


def word_sizes(word_bits: int | None) -> Sequence[int]:
    """The sizes to try, largest first; only ``word_bits`` where it is given."""
    return range(MAX_WORD_BITS, 0, -1) if word_bits is None else [word_bits]


def check_form(randomizer: WindowRandomizer) -> None:
    """Raise ValueError unless the integers form a window randomizer."""
    r = randomizer
    if not 1 <= r.word_bits <= MAX_WORD_BITS:
        raise ValueError(f"word_bits must lie in 1 … {MAX_WORD_BITS}, got {r.word_bits}")
    if not r.base or min(r.base) < 1 or any(s.length < 1 for s in r.extra):
        raise ValueError("every base weight and every extra segment must be at least 1")
    if r.window < 0:
        raise ValueError("the base line must fit the word")
    if r.base_total + r.extra_total >= 1 << 63:
        raise ValueError("the two lines together must stay below 2^63")
    if not r.offsets or min(r.offsets) < 0 or max(r.offsets) + r.window != r.extra_total:
        raise ValueError("the extra line must end where the furthest window ends")
    if len(r.values) != len(r.base) or any(not 0 <= s.output < len(r.base) for s in r.extra):
        raise ValueError("every segment must belong to an output")
