"""Artifacts of every form, and rows for each of them."""

import os

from labeldp_runtime import Randomizer

from runtime.tests.helpers import HERE, OLD
from tests.sql.hosts import Rows
from tests.sql.made_rows import made_rows

LONG = os.environ.get("LABELDP_LONG") == "1"
FIVE = {
    "window": OLD / "v2/optimal-unbiased.onnx",
    "table": OLD / "v2/exponential-text.onnx",
    "groups": HERE / "groups-three-columns.onnx",
    "sets": OLD / "sets_v1/design.onnx",
    "additive": OLD / "v2/laplace.onnx",
}
FILES = {
    **FIVE,
    "real": OLD / "v2/exponential-real-nearest.onnx",
    "real, additive": OLD / "v2/staircase-clipped-lattice.onnx",
    "default": OLD / "v2/randomized-response-default.onnx",
    "codes": OLD / "v2/rr-with-prior-codes.onnx",
    "many labels": OLD / "radii_v1/squared.onnx",
    "joint": HERE / "joint-mixed.onnx",
    "joint sets": HERE / "joint-sets.onnx",
    "group names": HERE / "groups-odd-names.onnx",
    "joint groups": HERE / "groups-joint-labels.onnx",
}
EVERY = sorted([*OLD.glob("*/*.onnx"), *HERE.glob("*.onnx")])
OTHERS = (
    [path for path in EVERY if path not in FILES.values()]
    if LONG
    else [HERE / "reals.onnx", OLD / "ranges_v1/columns.onnx"]
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
