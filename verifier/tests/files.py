"""Files from integers, what runs their graphs, and what alters them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import onnxruntime
from labeldp_verify import check_bytes
from labeldp_verify.analysis.any_form import ColumnLoss
from labeldp_verify.analysis.losses import Loss
from labeldp_verify.claims import Declaration
from labeldp_verify.claims.whole_file import TableStatement, state_certificate
from labeldp_verify.decode import (
    FileForm,
    read_certificate,
    read_domain,
    read_form,
    read_groups,
    read_model,
    read_sets,
)
from labeldp_verify.forms import (
    Domain,
    GroupedWindows,
    Groups,
    IntegerDomain,
    Integers,
    Randomizer,
    sets_of,
)
from labeldp_verify.graph import BucketGrid, canonical_json, write_model

from verifier.tests.integers import plain_counts

DOMAIN = IntegerDomain(10, 13)  # of ``some_windows`` and ``grouped``


def file_of(
    domain: Domain,
    randomizer: Randomizer | GroupedWindows,
    epsilon: Fraction | int = 2,
    loss: Loss = "squared",
    *,
    like: Randomizer | None = None,
    grid: BucketGrid | None = None,
    weights: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    paid: Fraction = Fraction(0),
    columns: Sequence[str] = (),
    losses: Sequence[ColumnLoss] | None = None,
) -> bytes:
    """A file of these integers, with a certificate that states them, or those of ``like``.

    ``weights`` [k] are a public prior's, which is uniform if left out. Tables by group have
    ``sizes`` [T], and priors that differ. ``paid`` is what was spent on the prior. A joint label
    has ``columns``, and under the sum of their losses ``losses``.
    """
    k, integers = domain.size, Integers.of(domain, like or randomizer)
    tables = [TableStatement(1, {"kind": "public", "weights": list(weights or [1] * k)})]
    if integers.groups.columns:
        tables = [
            TableStatement(
                size=3 * i + 1 if sizes is None else sizes[i],
                prior={"kind": "public", "weights": [1 + (i * y) % 5 for y in range(k)]},
            )
            for i in range(integers.groups.tables)
        ]
    provenance = Declaration(
        "test",
        "made_up",
        None if columns else "y",
        Fraction(epsilon),
        paid,
        tables[-1].prior,
        "0" * 64,
        {},
        columns=tuple(columns),
        losses=None if losses is None else tuple(losses),
        sets=sets_of(integers.tables[0]) is not None,
    )
    certificate = state_certificate(integers, loss, provenance, tables)
    return write_model(domain, randomizer, certificate.to_json(), grid)


def certificate_of(model: bytes) -> dict[str, Any]:
    """What the file claims."""
    return read_certificate(read_model(model)).to_json()


def with_certificate(model: bytes, certificate: dict[str, Any]) -> bytes:
    """The same graph with another certificate."""
    proto = onnx.load_from_string(model)
    (entry,) = (it for it in proto.metadata_props if it.key == "labeldp.certificate")
    entry.value = canonical_json(certificate)
    return proto.SerializeToString(deterministic=True)


def parts_of(model: bytes) -> tuple[Domain, FileForm, dict[str, Any]]:
    """Its domain, the form that decodes it, and what it claims."""
    proto = read_model(model)
    claims = read_certificate(proto)
    domain = read_domain(claims.label.domain)
    groups, sets = read_groups(claims), read_sets(claims.sets, domain.size)
    form = read_form(claims.form, proto, model, domain, groups, sets)
    return domain, form, claims.to_json()


def rebuilt(model: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The canonical file after ``change(certificate)``: what a forger with the writer can make."""
    domain, form, certificate = parts_of(model)
    change(certificate)
    return form.rebuild(domain, certificate)


def session_of(model: bytes) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def run(model: bytes, labels: Any, words: Any, groups: Any = None) -> list[Any]:
    """The graph's outputs for labels [n], words [n] or [n, w], and groups [n] if it has them."""
    feed = {"label": labels, "entropy": np.ascontiguousarray(words)}
    if groups is not None:
        feed["group"] = groups
    outputs: list[Any] = session_of(model).run(None, feed)[0].tolist()
    return outputs


def all_words(word_bits: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Every word of B bits, with noise in the bits below that must not matter."""
    u = np.arange(2**word_bits, dtype=np.uint64)
    low = np.random.default_rng(seed).integers(0, 2 ** (64 - word_bits), len(u), np.uint64)
    return (u << np.uint64(64 - word_bits)) | low


def group_array(groups: Groups, value: Any, count: int) -> np.ndarray[Any, Any]:
    return np.full(count, value, dtype=object if groups.columns[0].is_text else np.int64)


def assert_exact(
    model: bytes, randomizer: GroupedWindows, labels: Sequence[Any], unlisted: Sequence[Any]
) -> None:
    """Every word of every label in every group, and in some that are not listed."""
    groups = randomizer.groups
    session = session_of(model)
    for value in (*(groups.columns[0].values or ()), *unlisted):
        table = groups.table((value,))
        words = all_words(randomizer.windows[table].word_bits)
        for row, label in enumerate(labels):
            dtype = object if isinstance(label, str) else type(label)
            feed = {
                "label": np.full(len(words), label, dtype=dtype),
                "entropy": words,
                "group": group_array(groups, value, len(words)),
            }
            got = session.run(None, feed)[0].tolist()
            assert Counter(got) == plain_counts(randomizer.windows[table], row), (value, label)


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
