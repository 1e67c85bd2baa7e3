"""Random randomizers of the table and the additive form, and the plainest reading of them."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import onnxruntime
from labeldp_verify import check_bytes
from labeldp_verify.artifact import write_model
from labeldp_verify.forms import AdditiveRandomizer, Domain, Randomizer, TableRandomizer

from labeldp_compile.certificate import Provenance, build_certificate


def composition(generator: random.Random, total: int, parts: int) -> tuple[int, ...]:
    """Random integers ≥ 1 with the sum ``total``, small ones and large ones."""
    cuts = {0, total}
    while len(cuts) <= parts:
        reach = 1 << generator.randrange(total.bit_length())
        cut = generator.randrange(1, min(reach, total - 1) + 1) if total > 1 else 1
        cuts.add(generator.choice([cut, total - cut]))
    ends = sorted(cuts)
    weights = [b - a for a, b in pairwise(ends)]
    generator.shuffle(weights)
    return tuple(weights)


def near_constant(generator: random.Random, total: int, parts: int) -> tuple[int, ...]:
    """Integers that differ by little from one another, so that ε is moderate."""
    mean = total // parts
    weights = [mean - generator.randrange(mean // 4 + 1) for _ in range(parts)]
    for i in range(total - sum(weights)):
        if i > 4 * parts:  # the rest at once
            weights[generator.randrange(parts)] += total - sum(weights)
            break
        weights[generator.randrange(parts)] += 1
    return tuple(weights)


def random_table(
    generator: random.Random,
    labels: int,
    values: tuple[Any, ...],
    word_bits: int,
    row: Any = near_constant,
) -> TableRandomizer:
    counts = tuple(row(generator, 1 << word_bits, len(values)) for _ in range(labels))
    return TableRandomizer(word_bits, counts, values)


def random_additive(
    generator: random.Random,
    labels: int,
    spacing: int,
    reach: int,
    word_bits: int,
    origin: float = 0.0,
    unit: float = 1.0,
    row: Any = near_constant,
) -> AdditiveRandomizer:
    """Noise with random weights, with the tightest clamps half of the time."""
    period = (labels - 1) * spacing
    least, most = period - reach * period, reach * period
    low, high = sorted((generator.randint(least, most), generator.randint(least, most)))
    if generator.random() < 0.5:
        low, high = least, most
    words = 1 << word_bits
    return AdditiveRandomizer(
        word_bits=word_bits,
        labels=labels,
        spacing=spacing,
        blocks=row(generator, words, 2 * reach + 2),
        shapes=(row(generator, words, period), row(generator, words, period)),
        low=low,
        high=high,
        origin=origin,
        unit=unit,
    )


def laplace_like(
    labels: int,
    spacing: int,
    reach: int,
    word_bits: int = 64,
    origin: float = 0.0,
    unit: float = 1.0,
) -> AdditiveRandomizer:
    """Decreasing noise with a third of the weight a period further: what the compiler makes."""
    D, total = (labels - 1) * spacing, 1 << word_bits
    decay = [3**b for b in range(reach - 1, -1, -1)]
    step = total // (2 * sum(decay) + 1)  # beyond the last block: 1/3 + 1/9 + … = 1/2
    inner = [step * d for d in decay]
    tail = total // 2 - sum(inner)
    shape = [(2 * D - i) * total // (D * (3 * D + 1) // 2) for i in range(D)]
    shape[0] += total - sum(shape)
    return AdditiveRandomizer(
        word_bits=word_bits,
        labels=labels,
        spacing=spacing,
        blocks=(tail, *reversed(inner), *inner, tail),
        shapes=(tuple(reversed(shape)), tuple(shape)),
        low=D - reach * D,
        high=reach * D,
        origin=origin,
        unit=unit,
    )


def failed_step(data: bytes) -> str | None:
    """The verification step that a file fails, or None."""
    report = check_bytes(data)
    return None if report.ok else report.checks[-1].name


def swapped(i: int) -> Any:
    """Exchange two neighbours."""

    def change(entries: Any) -> Any:
        entries[[i, i + 1]] = entries[[i + 1, i]]
        return entries

    return change


def moved(i: int, by: int) -> Any:
    """Add to one entry, modulo 2^64."""

    def change(entries: Any) -> Any:
        entries[i : i + 1] += np.uint64(by)
        return entries

    return change


def replaced(record: Any, **changes: Any) -> Any:
    """A copy of a frozen record with other fields."""
    fields = {name: getattr(record, name) for name in record.__dataclass_fields__}
    return type(record)(**{**fields, **changes})


def noise(r: AdditiveRandomizer) -> dict[int, int]:
    """Each noise value and its weight in units of 2^(−2B), as the definition says."""
    first = -(len(r.blocks) // 2)
    return {
        (first + j) * r.period + i: weight * r.shapes[first + j >= 0][i]
        for j, weight in enumerate(r.blocks)
        for i in range(r.period)
    }


def plain_distribution(randomizer: Randomizer, row: int) -> dict[Any, Fraction]:
    """The probability of each output of a row: its value, or its lattice point if additive."""
    if isinstance(randomizer, TableRandomizer):
        pairs = zip(randomizer.values, randomizer.counts[row], strict=True)
        return {value: Fraction(count, randomizer.words) for value, count in pairs}
    assert isinstance(randomizer, AdditiveRandomizer)
    r, total = randomizer, Counter[int]()
    for n, weight in noise(r).items():
        total[min(max(row * r.spacing + n, r.low), r.high)] += weight
    return {point: Fraction(weight, r.words**2) for point, weight in total.items()}


def plain_ratio(randomizer: Randomizer, labels: int) -> Fraction:
    """The largest ratio of an output's probabilities."""
    rows = [plain_distribution(randomizer, row) for row in range(labels)]
    outputs = set().union(*rows)
    return max(max(p[v] for p in rows) / min(p[v] for p in rows) for v in outputs)


def plain_mean(distribution: dict[Any, Fraction], f: Any) -> Fraction:
    return sum((p * f(v) for v, p in distribution.items()), Fraction(0))


def certified(
    domain: Domain,
    randomizer: Randomizer,
    epsilon: Fraction,
    loss: Any = "squared",
    like: Randomizer | None = None,
) -> bytes:
    """A file whose certificate was computed for the randomizer, or for another one."""
    prior = {"kind": "uniform", "weights": [1] * domain.size}
    provenance = Provenance("test", "made_up", "y", epsilon, Fraction(0), prior, "0" * 64, {})
    certificate = build_certificate(domain, like or randomizer, loss, provenance).to_json()
    return write_model(domain, randomizer, certificate)


def run(model: bytes, labels: Any, entropy: Any) -> list[Any]:
    """The graph's outputs for labels and words."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    outputs = session.run(None, {"label": labels, "entropy": np.ascontiguousarray(entropy)})
    return outputs[0].tolist()


def with_constant(model: bytes, name: str, change: Any) -> bytes:
    """The file with one constant replaced by ``change(array)``; of the array's own shape."""
    proto = onnx.load_from_string(model)
    (tensor,) = (t for t in proto.graph.initializer if t.name == name)
    kind = {onnx.TensorProto.UINT64: "<u8", onnx.TensorProto.INT64: "<i8"}
    array = np.frombuffer(tensor.raw_data, kind.get(tensor.data_type, "<f8"))
    changed = np.asarray(change(array.copy()), dtype=array.dtype)
    tensor.raw_data = changed.tobytes()
    if tensor.dims:
        tensor.dims[0] = len(changed)
    return proto.SerializeToString(deterministic=True)
