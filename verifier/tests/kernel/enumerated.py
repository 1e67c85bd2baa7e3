"""The ratio of a file as onnxruntime executes it: every word, and labels in and out of range."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import onnxruntime as ort
from labeldp_verify.graph.inputs import in_limbs

REAL = [float("nan"), float("-inf"), float("inf"), -1e300, -0.0, *np.linspace(-2, 8, 21), 2**53]
WHOLE = [-(2**63), -5, -2, -1, 0, 1, 2, 3, 5, 7, 2**31, 2**32 + 1, 2**53 + 1, 2**63 - 1]
TEXTS = ["a", "b", "", "é", "x", "y", "u", "v", "nobody listed it"]
VALUES = {
    "tensor(double)": (np.float64, REAL),
    "tensor(int64)": (np.int64, WHOLE),
    "tensor(string)": (object, TEXTS),
}
ROUNDING = [0, 2**63, 2**64 - 1]
MOST_ROWS = 1 << 16
# What onnxruntime says of inputs of another type or shape, before it looks at any value.
UNFIT = ("Unexpected input data type", "Invalid rank for input", "Got invalid dimensions for input")


class Fails(Exception):  # noqa: N818
    """A row depends on another one, or some labels never give an answer that others give."""


def opened(data):
    """A session, or None where onnxruntime does not load the file."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception:
        return None


def real_ratio(session, bits, words, rng):
    """The largest ratio over answers, labels, groups and rounding words; None if too many rows.

    ``bits`` and ``words`` of those that the form uses. Raises Fails.
    """
    given = session.get_inputs()
    labels = [one for one in given if one.name.startswith("label")]
    groups = [one for one in given if one.name.startswith("group")]
    entropy = next(one for one in given if one.name == "entropy")
    width = entropy.shape[1] if len(entropy.shape) > 1 else 1
    limbs = limbs_of(given)
    width //= limbs or 1
    kinds = [VALUES[one.type][1] for one in labels]
    each = list(itertools.product(*(kind if len(kinds) == 1 else kind[::3] for kind in kinds)))
    used = list(itertools.product(*[[u << (64 - bits) for u in range(1 << bits)]] * words))
    worst = Fraction(1)
    if len(each) * len(used) > MOST_ROWS:
        return None
    # A few of each: other cases have others.
    most = 4 if len(groups) > 1 else 6
    places = [rng.sample(VALUES[one.type][1], most) for one in groups]
    for group in itertools.product(*places):
        for rounding in ROUNDING if width > words else [0]:
            rows = [(label, word) for label in each for word in used]
            worst = max(worst, _of_rows(session, given, rows, group, rounding, width, rng))
    return worst


def limbs_of(given):
    """How many limbs a word has; 0 if words are whole. A draw takes one or two words, and the
    labels of a real domain one more."""
    entropy = next(one for one in given if one.name == "entropy")
    if entropy.type != "tensor(int64)":
        return 0
    return 3 if entropy.shape[1] == 3 else 2


def _of_rows(session, given, rows, group, rounding, width, rng):
    found = _run(session, given, rows, group, rounding, width)
    if found is None:  # each row alone, and none depends on another
        (first,) = _run(session, given, rows[:1], group, rounding, width)
        if first == ("unfit",):  # as every row is, for all have the same shape
            return Fraction(1)
        found = [_run(session, given, [row], group, rounding, width)[0] for row in rows]
    else:
        order = rng.sample(range(len(rows)), len(rows))
        mixed = _run(session, given, [rows[i] for i in order], group, rounding, width)
        if mixed is None or any(found[i] != one for i, one in zip(order, mixed, strict=True)):
            raise Fails("a row depends on other rows")
    counts = {}
    for (label, _), answer in zip(rows, found, strict=True):
        counts.setdefault(tuple(map(repr, label)), Counter())[answer] += 1
    worst = Fraction(1)
    for answer in set(found):
        of_labels = [count[answer] for count in counts.values()]
        if not min(of_labels):
            raise Fails("an answer that some labels never give")
        worst = max(worst, Fraction(max(of_labels), min(of_labels)))
    return worst


def _run(session, given, rows, group, rounding, width):
    """The answers, or None where some of several rows fail: to fail is an answer of a row, too."""
    feeds, at = {}, 0
    for one in given:
        if one.name == "entropy":
            words = [(*word, rounding)[:width] for _, word in rows]
            value = np.array(words, dtype=np.uint64)
            if limbs := limbs_of(given):
                # What is above the lowest 31 bits must not matter.
                high = np.resize([0, -1, 2**32 - 1, -(2**32), 5], (len(words), width * limbs))
                feeds["entropy"] = in_limbs(value, limbs) | high << 31
            else:
                feeds["entropy"] = value if width > 1 else value[:, 0]
        elif one.name.startswith("group"):
            place = [other.name for other in given if other.name.startswith("group")]
            kind = VALUES[one.type][0]
            feeds[one.name] = np.array([group[place.index(one.name)]] * len(rows), dtype=kind)
        else:
            feeds[one.name] = np.array([label[at] for label, _ in rows], dtype=VALUES[one.type][0])
            at += 1
    try:
        outputs = session.run(None, feeds)
    except Exception as error:
        if len(rows) > 1:
            return None
        return [("unfit" if any(text in str(error) for text in UNFIT) else "fails",)]
    columns = [
        map(repr, output.tolist())
        if output.shape == (len(rows),)
        else [repr(output.tolist())] * len(rows)  # a constant
        for output in outputs
    ]
    return list(zip(*columns, strict=True))
