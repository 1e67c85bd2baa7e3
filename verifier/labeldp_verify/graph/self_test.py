"""Test vectors in the file: labels, words and the outputs that the integers give.

Some builds of onnxruntime compute int64 operations wrongly where high halves are equal and low
halves straddle bit 31. Small enumerations do not find this, so the vectors sit on both sides of
segment boundaries, of T, and of bit 31, for labels on both sides of the domain's ends. A runtime
runs them once at load time and refuses to work if one differs.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import cycle, islice, pairwise
from typing import Any, TypeVar

from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    Domain,
    GridDomain,
    GroupedWindows,
    IntegerDomain,
    JointDomain,
    Randomizer,
    TableRandomizer,
    WindowRandomizer,
    columns_of,
    sets_of,
)
from labeldp_verify.forms.domain import Category
from labeldp_verify.forms.joint import place_of
from labeldp_verify.forms.randomizers import Output
from labeldp_verify.graph.alias_table import alias_entries, column_bits, sample

# Words on which a platform could go wrong, and what the integers answer to them.
#
# They lie on both sides of the thresholds of every form, and of bit 31: some builds of
# onnxruntime compute int64 operations wrongly where high halves are equal and low halves
# straddle bit 31.


MAX_BOUNDARIES = 24
_LOW_BITS = (0x00000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)

T = TypeVar("T")
Words = tuple[int, ...]  # the uint64 words of one label, without the rounding word
Answer = Callable[[int, Words], Output]  # from a row and its words to the output
Tries = list[tuple[int | None, Words]]  # words for one row, or for any
Label = tuple[Category | float, ...]  # one a column


def critical_words(randomizer: Randomizer) -> tuple[Tries, Answer]:
    """The words to try, each with the row whose tables they test, and the function that gives the
    expected outputs.
    """
    if isinstance(randomizer, AdditiveRandomizer):
        return _additive(randomizer)
    if isinstance(randomizer, TableRandomizer):
        return _table(randomizer)
    return _window(randomizer)


def sampled(items: Sequence[T], count: int) -> list[T]:
    """At most ``count`` items, evenly spread, first and last included."""
    if len(items) <= count:
        return list(items)
    return [items[i * (len(items) - 1) // (count - 1)] for i in range(count)]


def _window(r: WindowRandomizer) -> tuple[Tries, Answer]:
    boundaries, owners = r.boundaries(), r.segment_outputs()
    B, base, X = r.word_bits, r.base_total, r.window
    inner = sampled(boundaries[1 : len(r.base)], MAX_BOUNDARIES)
    points = {0, base - 1, base, r.words - 1}
    points.update(p for c in inner for p in (c - 1, c))
    for offset in sampled(sorted(set(r.offsets)), MAX_BOUNDARIES):
        # u that lands on the first boundary inside the window of this offset
        cut = boundaries[bisect_right(boundaries, base + offset)] - offset if X else base
        points.update((cut - 1, cut))
    middle = {(p >> 32 << 32) | low for p in (base, r.words - 1, *inner) for low in _LOW_BITS}

    def answer(row: int, words: Words) -> Output:
        u = words[0] >> (64 - B)
        t = u + r.offsets[row] if u >= base else u
        return r.values[owners[bisect_right(boundaries, t) - 1]]

    return [(None, (word,)) for word in _full_words(points | middle, B)], answer


def _table(r: TableRandomizer) -> tuple[Tries, Answer]:
    tables: dict[int, list[int]] = {}

    def table(row: int) -> list[int]:
        if row not in tables:
            tables[row] = alias_entries(r.counts[row], r.word_bits)
        return tables[row]

    def words(row: int) -> list[Words]:
        points = _alias_points(table(row), r.word_bits)
        return [(word,) for word in _full_words(points, r.word_bits)]

    def answer(row: int, words: Words) -> Output:
        return r.values[sample(table(row), words[0] >> (64 - r.word_bits))]

    tries: Tries = [(row, word) for row in sampled(range(len(r.counts)), 3) for word in words(row)]
    return [*tries, *((None, word) for word in words(0))], answer


def _additive(r: AdditiveRandomizer) -> tuple[Tries, Answer]:
    B = r.word_bits
    blocks = alias_entries(r.blocks, B)
    shapes = [alias_entries(shape, B) for shape in r.shapes]
    first = _full_words(_alias_points(blocks, B), B)
    seconds = [_full_words(_alias_points(shape, B), B) for shape in shapes]

    def block_of(word: int) -> int:
        return sample(blocks, word >> (64 - B)) - r.reach - 1

    def answer(row: int, words: Words) -> Output:
        block = block_of(words[0])
        inside = sample(shapes[block >= 0], words[1] >> (64 - B))
        point = row * r.spacing + block * r.period + inside
        return r.value(min(max(point, r.low), r.high))

    # Every word for the blocks; and every word for a shape, with a block that draws from it.
    pairs = list(zip(first, cycle(seconds[0] + seconds[1]), strict=False))
    for side, second in enumerate(seconds):
        pairs += zip(cycle(w for w in first if (block_of(w) >= 0) == side), second, strict=False)
    return [(None, pair) for pair in pairs], answer


def _alias_points(entries: Sequence[int], word_bits: int) -> set[int]:
    """B-bit words on both sides of the thresholds of some columns."""
    c = column_bits(len(entries))
    points = {0, (1 << word_bits) - 1}
    for j in sampled(range(len(entries)), MAX_BOUNDARIES):
        threshold = entries[j] >> c
        heights = {h for h in (threshold - 1, threshold, threshold + 1) if h >= 0}
        # With the high half of the entry, and in the column that is compared with it.
        middle = {entries[j] >> 32 << 32 | low >> c << c | j for low in _LOW_BITS}
        points |= {h << c | j for h in heights} | middle
    return {p for p in points if p >> word_bits == 0}


def _full_words(points: set[int], word_bits: int) -> list[int]:
    """B-bit words as 64-bit words, every other one with the bits below set."""
    fill = (1 << (64 - word_bits)) - 1  # the bits below u, which must not matter
    inside = sorted(u for u in points if 0 <= u < 1 << word_bits)
    return [(u << (64 - word_bits)) | (fill if i % 2 else 0) for i, u in enumerate(inside)]


MAX_LABELS = 24
_INT64_EDGES = (-(2**63), -(2**31) - 1, -(2**31), 2**31 - 1, 2**31, 2**63 - 1)


MAX_TABLES, MAX_VECTORS = 12, 80  # of a file with groups, and vectors of one of its tables


def self_test_vectors(domain: Domain, randomizer: Randomizer | GroupedWindows) -> dict[str, Any]:
    """``{"labels": [text], "words": [[hex]], "outputs": [text]}``, and ``"groups"``, [[text]] by
    column, if it has them; of a joint label, labels and outputs are [[text]] by column, too.

    Numbers are text, because readers in JavaScript round integers above 2^53; ``NaN`` and
    ``Infinity`` are written as JavaScript does, which Python reads too.
    """
    if isinstance(randomizer, GroupedWindows):
        return _by_group(domain, randomizer)
    tries, answer = critical_words(randomizer)
    words = [group for row, group in tries if row is None]
    labels = _labels(domain)
    count = max(len(words), len(labels))
    pairs = list(zip(islice(cycle(labels), count), islice(cycle(words), count), strict=True))
    pairs += [(_label_of(domain, row), group) for row, group in tries if row is not None]
    rows = [(label, group, (group[0] * 0x9E3779B97F4A7C15) % 2**64) for label, group in pairs]
    two = domain.words_per_label == 2
    shown = _answer_text(domain, randomizer)
    return {
        "labels": [_label_text(label) for label, _, _ in rows],
        "words": [[f"{w:016x}" for w in (*group, *([r] if two else []))] for _, group, r in rows],
        "outputs": [shown(answer(row_of(domain, label, r), group)) for label, group, r in rows],
    }


def _label_text(label: Label) -> str | list[str]:
    """How a label is written: that of several columns as a list."""
    texts = [_text(part) for part in label]
    return texts if len(texts) > 1 else texts[0]


def _answer_text(domain: Domain, randomizer: Randomizer) -> Callable[[Any], str | list[str]]:
    """How an output is written: that of a joint label by its columns."""
    if not isinstance(domain, JointDomain) or sets_of(randomizer) is not None:
        return _text
    return lambda number: _label_text(domain.combination(number))


def _by_group(domain: Domain, randomizer: GroupedWindows) -> dict[str, Any]:
    """Some vectors of some tables, the first and the last included."""
    groups = randomizer.groups
    vectors: dict[str, Any] = {"labels": [], "words": [], "outputs": [], "groups": []}
    for table in sampled(range(groups.tables), MAX_TABLES):
        own = self_test_vectors(domain, randomizer.windows[table])
        rows = list(islice(groups.rows(table), MAX_VECTORS)) or groups.unlisted()
        for i in sampled(range(len(own["labels"])), MAX_VECTORS):
            for part in ("labels", "words", "outputs"):
                vectors[part].append(own[part][i])
            vectors["groups"].append([_text(value) for value in rows[i % len(rows)]])
    return vectors


def row_of(domain: Domain, label: Label, rounding_word: int) -> int:
    """The row that the graph must choose, in Python integers and float64."""
    columns = zip(columns_of(domain), label, strict=True)
    return domain.number(place_of(part, one, rounding_word) for part, one in columns)


def _label_of(domain: Domain, row: int) -> Label:
    places = zip(columns_of(domain), domain.places_of(row), strict=True)
    return tuple(part.listed[place] for part, place in places)


def _text(value: Category | float) -> str:
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    return str(value)


def _labels(domain: Domain) -> Sequence[Label]:
    """Labels inside, at the ends of and outside the domain."""
    each = [_labels_of_column(part) for part in columns_of(domain)]
    rounds = min(len(each), 2)
    # Round and round in each of several columns, the later ones shifted at every round.
    return [
        tuple(own[(i + j * (i // len(own))) % len(own)] for j, own in enumerate(each))
        for i in range(rounds * max(map(len, each)))
    ]


def _labels_of_column(domain: Domain) -> list[Category | float]:
    if isinstance(domain, CategoricalDomain):
        known = sampled(domain.values, MAX_LABELS)
        if domain.is_text:
            return [*known, "", "\x7flabeldp: not a category"]
        return [*known, *_INT64_EDGES]
    if isinstance(domain, IntegerDomain):
        inner = sampled(range(domain.min, domain.max + 1), MAX_LABELS)
        return [*inner, domain.min - 1, domain.max + 1, *_INT64_EDGES]
    inf = float("inf")
    edges = [domain.min, domain.max, -inf, inf, float("nan"), domain.min - 1.0, domain.max + 1.0]
    if isinstance(domain, GridDomain):
        middles = [low + (high - low) / 2 for low, high in pairwise(domain.values)]
        return [*edges, *sampled([*domain.values, *middles], MAX_LABELS)]
    steps = sampled(range(4 * domain.points), MAX_LABELS)
    inner_points = [
        domain.min + (s / (4 * domain.points)) * (domain.max - domain.min) for s in steps
    ]
    return [*edges, *inner_points]
