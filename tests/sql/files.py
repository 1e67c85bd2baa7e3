"""Artifacts of every form, and rows for each of them."""

import os

from labeldp_runtime import Randomizer

from runtime.tests.helpers import HERE, OLD
from tests.sql.hosts import Rows
from tests.sql.made_rows import made_rows

LONG = os.environ.get("LABELDP_LONG") == "1"
FIVE = {
    "window": OLD / "plain/optimal-unbiased.onnx",
    "table": OLD / "plain/exponential-text.onnx",
    "groups": HERE / "groups-three-columns.onnx",
    "sets": OLD / "sets/design.onnx",
    "additive": OLD / "plain/laplace.onnx",
}
FILES = {
    **FIVE,
    "real": OLD / "plain/exponential-real-nearest.onnx",
    "real, additive": OLD / "plain/staircase-clipped-lattice.onnx",
    "default": OLD / "plain/randomized-response-default.onnx",
    "codes": OLD / "plain/rr-with-prior-codes.onnx",
    "many labels": OLD / "radii/squared.onnx",
    "joint": HERE / "joint-mixed.onnx",
    "joint sets": HERE / "joint-sets.onnx",
    "group names": HERE / "groups-odd-names.onnx",
    "joint groups": HERE / "groups-joint-labels.onnx",
}
EVERY = sorted([*OLD.glob("*/*.onnx"), *HERE.glob("*.onnx")])
OTHERS = (
    [path for path in EVERY if path not in FILES.values()]
    if LONG
    else [HERE / "reals.onnx", OLD / "ranges/columns.onnx"]
)
IDS = {
    "integer": lambda count: [(-1) ** i * i * 2**43 for i in range(count)],
    "text": lambda count: [f"{i}':\né\\" for i in range(count)],
    "binary": lambda count: [i.to_bytes(3, "big") + b"\0:" for i in range(count)],
}


def rows_to_compare(name):
    """A million of each of the five with LABELDP_LONG=1."""
    return 1_000_000 if LONG and name in FIVE else 400


def rows_of(path, count, id_type="integer"):
    """Made-up rows of an artifact; the ids are of one type."""
    labels, groups = made_rows(Randomizer.load(path).certificate, count)
    return Rows(path, labels, IDS[id_type](count), groups)
