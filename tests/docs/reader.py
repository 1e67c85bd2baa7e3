"""A reader of artifacts, written from docs/artifact-format.md and nothing else.

It imports nothing of labeldp: ``onnx`` parses the protobuf, the rest is the standard library.
"""

import hashlib
import json
import struct
from itertools import pairwise
from math import prod

import onnx

INT64, STRING, DOUBLE, UINT64 = 7, 8, 11, 13


def _map(groups):
    columns = [{"bands": c["bands"], "values": c["values"]} for c in groups["columns"]]
    own = len(groups["tables"]) - 1
    return {"columns": columns, "own_tables": own, "table_of_cell": groups["table_of_cell"]}


class Artifact:
    """The certificate, and for every label the exact weight of every output."""

    def __init__(self, data):
        model = onnx.load_from_string(data)
        metadata = {entry.key: entry.value for entry in model.metadata_props}
        self.certificate = json.loads(metadata["labeldp.certificate"])
        self.constants = {t.name: _decode(t) for t in model.graph.initializer}
        read = {"window": self._window, "table": self._table, "additive": self._additive}
        read["grouped_window"] = self._grouped_window  # lists of weights and values, by table
        # weights: [k][m] in units of 1/total; values: [m]; tables: what digests.tables is about
        self.weights, self.total, self.values, self.tables = read[self.certificate["form"]]()

    def digest(self):
        domain, form = self.certificate["label"]["domain"], self.certificate["form"]
        document = {"domain": domain, "form": form, **self.tables}
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def _window(self):
        c = self.constants
        bits, T, offsets = 64 - c["word_shift"], c["base_total"], c["offsets"]
        edges = self._edges(T, 2**bits + max(offsets))
        return _read_window(bits, edges, c["segment_values"], T, offsets)

    def _grouped_window(self):
        c = self.constants
        totals, groups = c["base_totals"], self.certificate["groups"]
        shifts = c.get("word_shifts") or [c["word_shift"]] * len(totals)
        width, places = c["moves_per_group"], []
        base, extra = 0, sum(totals)
        for g, T in enumerate(totals):
            moves = c["moves"][g * width : (g + 1) * width]
            assert set(moves[::2]) == {base}
            offsets = [move - (extra - T) for move in moves[1::2]]
            bits = 64 - shifts[g]
            places.append((bits, base, extra, T, offsets))
            base, extra = base + T, extra + 2**bits - T + max(offsets)
        edges, values = self._edges(sum(totals), extra), c["segment_values"]
        read = []
        for bits, base, extra, T, offsets in places:
            end = extra + 2**bits - T + max(offsets)
            near = range(edges.index(base), edges.index(base + T))
            far = range(edges.index(extra), edges.index(end))
            own = [edges[i] - base for i in near] + [edges[i] - extra + T for i in far]
            own.append(end - extra + T)
            read.append(_read_window(bits, own, [values[i] for i in (*near, *far)], T, offsets))
        weights, totals, outputs, tables = zip(*read, strict=True)
        stated = [{"form": "window", **table} for table in tables]
        return (
            list(weights),
            list(totals),
            list(outputs),
            {"groups": _map(groups), "tables": stated},
        )

    def _edges(self, T, end):
        """The ends of all segments of the lines, from 0."""
        c = self.constants
        H, values = c["segment_shift"], c["segment_values"]
        if "bucket_shift" in c:
            lines = [(0, end, c["bucket_shift"], 0)]
        else:
            points = [0, T, *([c["far_point"]] if "far_point" in c else []), end]
            shifts, starts = c["bucket_shifts"], c["bucket_starts"]
            lines = list(zip(points[:-1], points[1:], shifts, starts, strict=True))
        starts = {0: 0}  # segment → its first integer
        for low, high, shift, start in lines:
            for bucket in range(low >> shift, ((high - 1) >> shift) + 1):
                q = c["grid"][bucket + start]
                first, last = max(bucket << shift, low), min((bucket + 1) << shift, high) - 1
                here, there = (first + q) >> H, (last + q) >> H
                starts.setdefault(here, first)
                if there != here:
                    starts[there] = (there << H) - q
        return [*(starts[i] for i in range(len(values))), end]

    def _table(self):
        c = self.constants
        bits, values = 64 - c.get("table_word_shift", 0), c["values"]
        size, entries = c["columns"], c["table_entries"]
        tables = [entries[i : i + size] for i in range(0, len(entries), size)]
        weights = [_alias_weights(table, bits)[: len(values)] for table in tables]
        stated = {"word_bits": bits, "counts": weights, "values": _hexadecimal(values)}
        return weights, 2**bits, values, stated

    def _additive(self):
        c = self.constants
        bits, D, S = 64 - c.get("block_word_shift", 0), c["period"], int(c["spacing"])
        J, size = len(c["shape_starts"]) // 2 - 1, c["shape_starts"][-1]
        blocks = _alias_weights(c["block_entries"], bits)[: 2 * J + 2]
        halves = c["shape_entries"][:size], c["shape_entries"][size:]
        shapes = [_alias_weights(half, bits)[:D] for half in halves]
        low, high, labels = int(c["low"]), int(c["high"]), D // S + 1
        weights = []
        for row in range(labels):
            weights.append([0] * (high - low + 1))
            for j, block in enumerate(blocks):
                b = j - (J + 1)
                for i, place in enumerate(shapes[b >= 0]):
                    t = min(max(row * S + b * D + i, low), high)
                    weights[-1][t - low] += block * place
        unit = c["unit"] if "unit" in c else c["unit_doubled"] / 2
        values = [t * unit + c["origin"] for t in range(low, high + 1)]
        stated = {"word_bits": bits, "labels": labels, "spacing": S, "blocks": blocks}
        ends = {"low": low, "high": high, "origin": c["origin"].hex(), "unit": unit.hex()}
        return weights, 4**bits, values, {**stated, "shapes": shapes, **ends}


def _read_window(bits, edges, values, T, offsets):
    """Weights, 2^B, outputs and tables of a window randomizer from the ends of its segments."""
    m = edges.index(T)
    lengths = [b - a for a, b in pairwise(edges)]
    outputs = [values[:m].index(value) for value in values]
    weights = []
    for offset in offsets:
        row = lengths[:m].copy()
        for i in range(m, len(values)):
            low, high = max(edges[i], T + offset), min(edges[i + 1], 2**bits + offset)
            row[outputs[i]] += max(high - low, 0)
        weights.append(row)
    extra = [[length, i] for length, i in zip(lengths[m:], outputs[m:], strict=True)]
    base = {"word_bits": bits, "base": lengths[:m], "extra": extra, "offsets": offsets}
    return weights, 2**bits, values[:m], {**base, "values": _hexadecimal(values[:m])}


def _alias_weights(entries, bits):
    """[2^c] how many of the 2^bits words lead to each item."""
    columns = len(entries)
    c, H = columns.bit_length() - 1, 2**bits // columns
    weights = [0] * columns
    for j, entry in enumerate(entries):
        q, a = entry >> c, entry % columns
        own = H if a == j else min(q + (j < a), H)
        weights[j] += own
        weights[a] += H - own
    return weights


def _decode(tensor):
    if tensor.data_type == STRING:
        return [text.decode() for text in tensor.string_data]
    code = {INT64: "q", UINT64: "Q", DOUBLE: "d"}[tensor.data_type]
    numbers = list(struct.unpack(f"<{prod(tensor.dims)}{code}", tensor.raw_data))
    return numbers if tensor.dims else numbers[0]


def _hexadecimal(values):
    return [value.hex() if isinstance(value, float) else value for value in values]
