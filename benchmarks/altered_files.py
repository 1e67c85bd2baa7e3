"""Altered files with groups, with sets, or of several columns: does ``labeldp verify`` refuse all?

    python benchmarks/altered_files.py groups --files 6000
    python benchmarks/altered_files.py sets --files 6000
    python benchmarks/altered_files.py joint --files 6000

Each file is an honest one, changed at one place: a byte, the length, an entry of a constant, a
node, a leaf of the certificate that the file must prove, or the integers themselves (so that a
probability changes), written again by the open writer with everything else that the certificate
says. None of them may verify.
"""

from __future__ import annotations

import argparse
import copy
import random
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
from labeldp_verify import check_bytes
from labeldp_verify.claims import label as groups
from labeldp_verify.claims import label as joint
from labeldp_verify.claims import parse_certificate
from labeldp_verify.claims.label import SetsClaim
from labeldp_verify.claims.whole_file import PROVED
from labeldp_verify.forms import ClassSets, GroupColumn, GroupedWindows, Groups, TableRandomizer
from labeldp_verify.forms.randomizers import Segment
from labeldp_verify.graph import canonical_json, tables_digest, write_model

from labeldp_compile.build.assembly import assemble
from labeldp_compile.prior.group_cells import number_tables
from labeldp_compile.prior.priors import Prior, TablePrior
from labeldp_compile.spec import parse_spec
from tests.fixtures.compiled import compile_text, joint_spec, sets_spec

SPEC = """
version: 1
name: altered
goal: labels
label: {{column: y, domain: {{kind: integer, min: 0, max: 7}}}}
loss: squared
privacy: {{epsilon: 2}}
prior: {{kind: uniform}}
mechanism: {{kind: {mechanism}}}
"""
AGE = GroupColumn("age", bands=(18.0, 25.0, 65.0))
WORK = GroupColumn("work", ("private", "", "é"))
CODE = GroupColumn("code", (7, -2))
MAPS = [
    Groups.each(GroupColumn("n", (0, 1, 2))),
    Groups.each(CODE),
    Groups.each(WORK),
    Groups.each(AGE),
    number_tables((AGE, WORK), [0, 1, 2, 0, 0, 0, 3, 3, None, 3, 2, 0]),
    Groups.each(CODE, GroupColumn("x", bands=(0.0,))),
]
MECHANISMS = ("rr_on_bins", "optimal_unbiased", "rr_with_prior")


def honest(groups, mechanism):
    """A file whose tables have priors around different labels."""
    spec = parse_spec(SPEC.format(mechanism=mechanism))
    tables = []
    for i in range(groups.tables):
        weights = [1 + int(100 / (1 + (y - 3 * i % 8) ** 2)) for y in range(8)]
        tables.append(TablePrior({"kind": "public", "weights": weights}, 10 + i))
    return spec.domain, assemble(spec, Prior(Fraction(0), Fraction(2), tables, groups), "0" * 64)


TEXT = "{{kind: categorical, values: [{}]}}"
SETS = [  # all subsets, designs, shortened ones, integers, and single labels
    (TEXT.format("a, b, c, d"), "{default: a}", "0.4"),
    (TEXT.format("a, b, c, d, e, f, g"), "{default: c}", "1"),
    ("{kind: integer, min: 3, max: 12}", "clamp", "0.5"),
    (TEXT.format(", ".join(f"c{i}" for i in range(31))), "{default: c0}", "1"),
    (TEXT.format(", ".join(map(str, range(17)))), "{default: 5}", "2"),
    (TEXT.format("a, b, c, d"), "{default: a}", "3"),
]


def honest_set(domain, rule, epsilon):
    """A file whose private labels are sets."""
    artifact = compile_text(sets_spec(domain, rule, epsilon, "altered"))
    return artifact.only.domain, artifact


JOINT = [  # every mechanism, both losses, and a real column
    ("{kind: randomized_response}", 2, {"real": True}),
    ("{kind: rr_top_k, k: 5}", 1, {}),
    ("{kind: rr_with_prior}", 4, {"loss": "zero_one"}),
    ("{kind: subset_selection}", 0.5, {"loss": "zero_one"}),
]


class Alterations:
    """One honest file, and ways to change it; each gives bytes, or None where nothing changed."""

    proved = (*PROVED, *groups.GroupsClaim.proved)

    def __init__(self, domain, artifact, generator):
        self.domain, self.artifact, self.random = domain, artifact, generator
        self.data = artifact.model
        self.proto = onnx.load_from_string(self.data)

    def byte(self):
        """A byte changed."""
        changed = bytearray(self.data)
        changed[self.random.randrange(len(changed))] ^= self.random.randrange(1, 256)
        return bytes(changed)

    def length(self):
        """Bytes cut off, left out or put in."""
        at = self.random.randrange(len(self.data))
        return self.random.choice(
            [
                self.data[:at],
                self.data[:at] + self.data[at + 1 :],
                self.data[:at] + b"\0" + self.data[at:],
            ]
        )

    def constant(self):
        """Two entries of a constant exchanged, or one changed."""
        proto = copy.deepcopy(self.proto)
        tensor = self.random.choice([t for t in proto.graph.initializer if t.raw_data])
        words = np.frombuffer(tensor.raw_data, dtype=np.uint64).copy()
        i, j = self.random.randrange(len(words)), self.random.randrange(len(words))
        if self.random.random() < 0.5 and words[i] != words[j]:
            words[[i, j]] = words[[j, i]]
        else:
            words[i] ^= np.uint64(
                self.random.choice([1, 2**64 - 1, 1 << self.random.randrange(64)])
            )
        tensor.raw_data = words.tobytes()
        return proto.SerializeToString(deterministic=True)

    def node(self):
        """A node left out, rewired or of another kind."""
        proto = copy.deepcopy(self.proto)
        nodes = proto.graph.node
        i = self.random.randrange(len(nodes))
        names = [n.output[0] for n in nodes] + [t.name for t in proto.graph.initializer]
        change = self.random.choice(["drop", "input", "op", "attribute"])
        if change == "drop":
            del nodes[i]
        elif change == "input" and nodes[i].input:
            nodes[i].input[self.random.randrange(len(nodes[i].input))] = self.random.choice(names)
        elif change == "op":
            nodes[i].op_type = self.random.choice(["Identity", "Sub", "Max", "Less", "Neg"])
        elif nodes[i].attribute:
            attribute = self.random.choice(list(nodes[i].attribute))
            if attribute.ints:
                attribute.ints[self.random.randrange(len(attribute.ints))] += 1
            elif attribute.strings:
                attribute.strings[self.random.randrange(len(attribute.strings))] += b"x"
            else:
                attribute.i += 1
        return proto.SerializeToString(deterministic=True)

    def claim(self):
        """A leaf that the file must prove, restated in a file that is whole otherwise.

        Not of the witnesses: another one may prove the same bound as well.
        """
        stated = self.artifact.certificate.to_json()
        proved = [p for p in self.proved if not p.endswith("optimality")]
        path = self.random.choice(proved).split(".")
        holder, key = stated, path[-1]
        for part in path[:-1]:
            holder = holder[part]
            if isinstance(holder, list):
                holder = self.random.choice(holder)
        holder, key = _leaf(holder, key, self.random)
        value = holder[key]
        holder[key] = _other(value, self.random)
        if holder[key] == value and type(holder[key]) is type(value):
            return None
        try:
            certificate = parse_certificate(stated).to_json()
            return write_model(self.domain, self.artifact.artifact.lookup, certificate)
        except Exception:
            return _with_certificate(self.proto, stated)

    def integers(self):
        """Other probabilities with the claims of the honest ones; only the digest is theirs."""
        r = self.artifact.artifact.lookup
        table = self.random.randrange(len(r.windows))
        windows = list(r.windows)
        if self.random.random() < 0.3:
            other = self.random.randrange(len(windows))
            windows[table], windows[other] = windows[other], windows[table]
        else:
            windows[table] = _altered(windows[table], self.random)
        changed = GroupedWindows(r.groups, tuple(windows))
        pairs = zip(changed.windows, r.windows, strict=True)
        if all(_counts(new) == _counts(old) for new, old in pairs):
            return None
        certificate = self.artifact.certificate
        digests = replace(certificate.digests, tables=tables_digest(self.domain, changed))
        try:
            return write_model(
                self.domain, changed, replace(certificate, digests=digests).to_json()
            )
        except Exception:
            return None


class SetAlterations(Alterations):
    """The same of a file whose private labels are sets, or single labels."""

    proved = (*PROVED, *SetsClaim.proved)

    def integers(self):
        """Other probabilities, or other sets, with the claims of the honest ones."""
        r = self.artifact.artifact.lookup
        changed = (
            self._other_table(r) if isinstance(r, TableRandomizer) else _altered(r, self.random)
        )
        if changed is None or changed == r:
            return None
        certificate = self.artifact.certificate
        digests = replace(certificate.digests, tables=tables_digest(self.domain, changed))
        stated = replace(certificate, digests=digests)
        if isinstance(r, TableRandomizer) and self.random.random() < 0.5:
            blocks = replace(stated.sets, blocks=changed.sets.to_hex())
            stated = replace(stated, parts={**stated.parts, "sets": blocks})
        try:
            return write_model(self.domain, changed, stated.to_json())
        except Exception:
            return None

    def _other_table(self, r):
        counts, blocks = [list(row) for row in r.counts], list(r.sets.blocks)
        kind = self.random.choice(["words", "rows", "outputs", "member", "sets"])
        i, j = self.random.sample(range(r.outputs), 2)
        y, z = self.random.sample(range(len(counts)), 2)
        if kind == "words":
            step = min(self.random.choice([1, 2, 1 << 10, 1 << 50]), counts[y][j] - 1)
            counts[y][i], counts[y][j] = counts[y][i] + step, counts[y][j] - step
        elif kind == "rows":
            counts[y], counts[z] = counts[z], counts[y]
        elif kind == "outputs":
            counts[y][i], counts[y][j] = counts[y][j], counts[y][i]
        elif kind == "member":
            blocks[i] ^= 1 << y
        else:
            blocks[i], blocks[j] = blocks[j], blocks[i]
        sets = ClassSets(r.sets.classes, tuple(blocks))
        return replace(r, counts=tuple(map(tuple, counts)), sets=sets)


class JointAlterations(SetAlterations):
    """The same of a file whose label has several columns."""

    proved = (*PROVED, *joint.JointClaim.proved)


def _counts(window):
    """Of each row, how many words give each value; in units that all word sizes share."""
    unit, found = 1 << (62 - window.word_bits), []
    for offset in window.offsets:
        row = Counter()
        for length, value in zip(window.base, window.values, strict=True):
            row[value] += unit * length
        at, first, last = 0, offset, offset + window.window
        for segment in window.extra:
            inside = min(at + segment.length, last) - max(at, first)
            row[window.values[segment.output]] += unit * max(inside, 0)
            at += segment.length
        found.append({value: count for value, count in row.items() if count})
    return found


def _altered(window, generator):
    """Base lengths, segments or offsets moved by a little, and still a form that can be written."""
    kind = generator.choice(["base", "extra", "offset", "value"])
    step = generator.choice([1, 2, 1 << 10, 1 << 30])
    base, extra, offsets, values = (
        list(window.base),
        list(window.extra),
        list(window.offsets),
        list(window.values),
    )
    if kind == "base" and len(base) > 1:
        i, j = generator.sample(range(len(base)), 2)
        base[i], base[j] = base[i] + step, base[j] - step
    elif kind == "extra" and len(extra) > 1:
        i, j = generator.sample(range(len(extra)), 2)
        extra[i] = Segment(extra[i].length + step, extra[i].output)
        extra[j] = Segment(extra[j].length - step, extra[j].output)
    elif kind == "offset":
        i = generator.randrange(len(offsets))
        offsets[i] = offsets[generator.randrange(len(offsets))]
    else:
        i = generator.randrange(len(values))
        values[i] += 0.001 if isinstance(values[i], float) else type(values[i])("7")
    return replace(
        window, base=tuple(base), extra=tuple(extra), offsets=tuple(offsets), values=tuple(values)
    )


def _leaf(holder, key, generator):
    value = holder[key]
    while isinstance(value, dict | list) and value:
        holder = value
        key = generator.choice(list(value) if isinstance(value, dict) else range(len(value)))
        value = holder[key]
    return holder, key


def _other(value, generator):
    if isinstance(value, bool) or value is None:
        return 0.5
    if isinstance(value, int):
        return value + generator.choice([1, -1, 2**31])
    if isinstance(value, float):
        return value * generator.choice([0.5, 0.999999, 1.000001, 2]) or 1.0
    if isinstance(value, str) and "/" in value:
        p, q = value.split("/")
        return f"{int(p) + generator.choice([1, -1])}/{q}"
    return f"{value}1" if isinstance(value, str) else [value]


def _with_certificate(proto, stated):
    changed = copy.deepcopy(proto)
    for entry in changed.metadata_props:
        if entry.key == "labeldp.certificate":
            try:
                entry.value = canonical_json(stated)
            except ValueError:
                return None
    return changed.SerializeToString(deterministic=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("form", choices=("groups", "sets", "joint"))
    parser.add_argument("--files", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    if arguments.form == "groups":
        files = [Alterations(*honest(g, m), generator) for g in MAPS for m in MECHANISMS]
    elif arguments.form == "sets":
        files = [SetAlterations(*honest_set(*case), generator) for case in SETS]
    else:
        honest_ones = [compile_text(joint_spec(m, e, **more)) for m, e, more in JOINT]
        files = [JointAlterations(one.only.domain, one, generator) for one in honest_ones]
    assert all(check_bytes(one.data).ok for one in files)
    kinds = ("byte", "length", "constant", "node", "claim", "integers")
    refused, accepted, steps = Counter(), [], Counter()
    start = time.time()
    while sum(refused.values()) + len(accepted) < arguments.files:
        one, kind = generator.choice(files), generator.choice(kinds)
        data = getattr(one, kind)()
        if data is None or data == one.data:
            continue
        report = check_bytes(data)
        if report.ok:
            accepted.append((kind, data))
        else:
            refused[kind] += 1
            steps[report.checks[-1].name] += 1
    print(
        f"{len(files)} honest files; {sum(refused.values()):,} altered ones refused, "
        f"{len(accepted)} accepted; {time.time() - start:.0f} s"
    )
    for kind in kinds:
        print(f"  {kind:<9} {refused[kind]:,}")
    print("refused by: " + ", ".join(f"{name} {n:,}" for name, n in steps.most_common()))
    for number, (kind, data) in enumerate(accepted):
        Path(f"accepted-{number}.onnx").write_bytes(data)
        print(f"ACCEPTED: {kind}, accepted-{number}.onnx")
    raise SystemExit(bool(accepted))


if __name__ == "__main__":
    main()
