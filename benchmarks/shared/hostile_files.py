"""Files that are to be as much work for a verifier as their size allows, a generator each.

A generator takes random numbers, a size, and an honest file to start from.
"""

import gzip
import json
import random
from fractions import Fraction

import onnx
from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.bounds import least_log_bound
from labeldp_verify.artifact import canonical_json, write_model
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    IntegerDomain,
    RealDomain,
    TableRandomizer,
    WindowRandomizer,
)
from labeldp_verify.forms.window import Segment

from labeldp_compile.certificate import Provenance, build_certificate
from labeldp_compile.rounding.randomized_response import randomized_response

MIB = 1 << 20
LARGEST = 64 * MIB


# ---- protobuf by hand ----------------------------------------------------------------------------


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def held(field, content):
    """A field that holds bytes."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def repeated(piece, size):
    return piece * max(1, size // len(piece))


# Where it lies (graph 7, node 1, attribute 5, tensor 5), and what is repeated there.
BOMBS = {
    "opsets": ((), 8, b""),
    "metadata": ((), 14, b""),
    "functions": ((), 25, b""),
    "training": ((), 20, b""),
    "functions of nodes": ((25,), 7, b""),
    "nodes": ((7,), 1, b""),
    "named nodes": ((7,), 1, held(3, b"n") + held(4, b"Add")),
    "initializers": ((7,), 5, b""),
    "named initializers": ((7,), 5, held(8, b"offsets") + b"\x10\x07"),
    "inputs": ((7,), 11, b""),
    "values": ((7,), 13, b""),
    "types": ((7,), 13, held(2, held(1, held(2, b"")))),
    "quantization": ((7,), 14, b""),
    "sparse": ((7,), 15, b""),
    "metadata of the graph": ((7,), 16, b""),
    "attributes": ((7, 1), 5, b""),
    "inputs of a node": ((7, 1), 1, b""),
    "outputs of a node": ((7, 1), 2, b"x"),
    "strings": ((7, 1, 5), 9, b""),
    "tensors": ((7, 1, 5), 10, b""),
    "graphs": ((7, 1, 5), 11, b""),
    "nodes of a graph": ((7, 1, 5, 6), 1, b""),
    "types of an attribute": ((7, 1, 5), 15, b""),
    "texts": ((7, 5), 6, b""),
    "external data": ((7, 5), 13, b""),
    "dimensions": ((7, 11, 2, 1, 2), 1, b""),
}


def bomb(rng, size, honest):
    """Empty or tiny messages, by the million, alone or behind a good file."""
    path, field, content = BOMBS[rng.choice(sorted(BOMBS))]
    data = repeated(held(field, content), size)
    for outer in reversed(path):
        data = held(outer, data)
    return rng.choice([b"", honest]) + data


def packed(rng, size, honest):
    """Arrays of numbers where artifacts have none, or in another encoding."""
    field, piece = rng.choice(
        [(4, b"\0\0\0\0"), (5, b"\1"), (7, b"\1"), (10, b"\0" * 8), (11, b"\1"), (1, b"\1")]
    )
    tensor = held(8, b"offsets") + b"\x10\x07" + held(field, repeated(piece, size))
    ints = held(1, b"keys_int64s") + held(rng.choice([7, 8]), repeated(b"\1\2\3\4", size))
    inside = rng.choice([held(5, tensor), held(1, held(5, ints))])
    return rng.choice([b"", honest]) + held(7, inside)


def plain_numbers(rng, size, honest):
    """Numbers one by one: dimensions of a constant, or keys of a node."""
    if rng.random() < 0.5:
        number = varint(8) + varint(rng.choice([1, 2**62, 2**63 - 1]))
        inside = held(5, held(8, b"offsets") + b"\x10\x07" + repeated(number, size))
    else:
        inside = held(1, held(5, held(1, b"keys_int64s") + repeated(b"\x40\x01", size)))
    return rng.choice([b"", honest]) + held(7, inside)


def nested(rng, size, honest):
    """Graphs in attributes of nodes in graphs, or groups, as deep as it goes."""
    if rng.random() < 0.3:
        return rng.choice([b"", honest]) + repeated(b"\x0b", size)
    data = b""
    for _ in range(min(size // 40, 20_000)):
        data = held(6, held(1, held(5, data)))
    return rng.choice([b"", honest]) + held(7, held(1, held(5, data)))


def noise(rng, size, honest):
    """No artifact at all."""
    kinds = (
        lambda: rng.randbytes(size),
        lambda: bytes(size),
        lambda: gzip.compress(bytes(size)),
        lambda: b"\xff" * size,
        lambda: repeated(b"version: 1\n", size),
        lambda: honest[: rng.randrange(len(honest))],
        lambda: repeated(honest, size),
    )
    return rng.choice(kinds)()


def altered(rng, size, honest):
    """A good file with bytes that are others, gone, or too many."""
    data = bytearray(honest)
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(len(data))
        if rng.random() < 0.5:
            data[at] ^= 1 << rng.randrange(8)
        else:
            data[at:at] = rng.randbytes(rng.randrange(1, 20))
    return bytes(data) + held(99, bytes(min(size, LARGEST - len(data) - 20)))


# ---- certificates ----------------------------------------------------------------------------


def with_metadata(model, changes):
    proto = onnx.load_from_string(model)
    for prop in proto.metadata_props:
        if prop.key in changes:
            prop.value = changes[prop.key]
    return proto.SerializeToString(deterministic=True)


def certificate_of(model):
    proto = onnx.load_from_string(model)
    return json.loads({p.key: p.value for p in proto.metadata_props}["labeldp.certificate"])


def json_bomb(rng, size, honest):
    """A certificate that is anything but one."""
    size = min(size, LARGEST - 200_000)
    piece, start, end = rng.choice(
        [
            ("[", "", ""),
            ("[],", "[", "0]"),
            ("{},", "[", "0]"),
            ("0,", "[", "0]"),
            ("1.5,", "[", "0]"),
            ("1e5,", "[", "0]"),
            ('"ab",', "[", "0]"),
            ('"a\U0001f600",', "[", "0]"),
            ("true,", "[", "0]"),
            ("1" * 4000 + ",", "[", "0]"),
            ("1" * 200_000 + ",", "[", "0]"),
            ("1e999999999,", "[", "0]"),
            ('{"a":[{"b":[', "", ""),
            ("[[],[[]]],", "[", "0]"),
            ("\\u0000", '"', '"'),
            ("x", '"', '"'),
            ("\U0001f600", '"', '"'),
            ("é", '"', '"'),
            (" ", "", "{}"),
            ("NaN,", "[", "0]"),
        ]
    )
    text = start + piece * (size // len(piece.encode())) + end
    if rng.random() < 0.3 and start == "[":
        members = ",".join(f'"{i}":0' for i in range(size // 12))
        text = f"{{{members}}}"
    place = rng.choice(
        ["labeldp.certificate"] * 4 + ["labeldp.format_version", "labeldp.self_test"]
    )
    if rng.random() < 0.5 and place == "labeldp.certificate":
        field = rng.choice(["tools", "fields", "auto", "optimality", "prior", "exact", "label"])
        certificate = certificate_of(honest)
        certificate[field] = "@"
        text = canonical_json(certificate).replace('"@"', text)
    return with_metadata(honest, {place: text})


def long_fields(rng, size, honest):
    """A canonical certificate in which one field is as long as its type allows."""
    size = min(size, 20 * MIB)
    certificate = certificate_of(honest)
    count = size // 8
    changes = [
        lambda c: c["prior"].update(weights=[2**199] * (size // 62)),
        lambda c: c["prior"].update(weights=list(range(count))),
        lambda c: c["prior"].update(weights=[[]] * count),
        lambda c: c["utility"].update(biases=[0.5] * count),
        lambda c: c["fields"].update(proved=["x"] * count),
        lambda c: c.update(tools={str(i): "1" for i in range(count)}),
        lambda c: c.update(name="x" * size),
        lambda c: c.update(insecure="x" * size),
        lambda c: c["label"].update(column="\U0001f600" * (size // 4)),
        lambda c: c["exact"].update(epsilon_label="9" * size),
        lambda c: c["exact"].update(epsilon_label="1e" + "9" * 9),
        lambda c: c["exact"].update(epsilon_label="9" * 1000 + "/" + "7" * 1000),
        lambda c: c["exact"].update(epsilon_label="1/" + "7" * 1000),
        lambda c: c["exact"].update(realised_ratio="9" * size),
        lambda c: c.update(labels=10**4000),
        lambda c: c["label"]["domain"].update(min=-(10**4000), max=10**4000),
        lambda c: c.update(format_version="x" * size),
        lambda c: c["label"].update(
            domain={
                "kind": "real",
                "min": rng.choice([0.0, 5e-324, -1.7e308]),
                "max": rng.choice([1.0, 1.7e308, 8e307]),
                "points": rng.choice([2, 1000, 50_000, 100_000, 1_000_000, 10**15]),
                "rounding": rng.choice(["nearest", "unbiased"]),
                "out_of_domain": "clamp",
            }
        ),
        lambda c: c["label"].update(
            domain={
                "kind": "categorical",
                "values": [f"c{i}" for i in range(count)],
                "out_of_domain": {"default": "c1"},
            }
        ),
        lambda c: c["label"].update(
            domain={"kind": "integer", "min": 0, "max": count, "out_of_domain": "clamp"}
        ),
    ]
    rng.choice(changes)(certificate)
    return with_metadata(honest, {"labeldp.certificate": canonical_json(certificate)})


# ---- well-formed files ------------------------------------------------------------------------


def certified(domain, randomizer, loss, like=None, weights=None, epsilon=60, users=None):
    """A file whose certificate holds for another, cheaper randomizer, or for its own."""
    prior = {"kind": "public", "weights": weights or [1] * domain.size}
    provenance = Provenance(
        "x", "rr", "y", Fraction(epsilon), Fraction(0), prior, "0" * 64, {}, labels_per_user=users
    )
    return write_model(
        domain,
        randomizer,
        build_certificate(domain, like or randomizer, loss, provenance).to_json(),
    )


def restated(model, change):
    """The same file with a certificate that was changed, and nothing else."""
    certificate = certificate_of(model)
    change(certificate)
    return with_metadata(model, {"labeldp.certificate": canonical_json(certificate)})


def scaled(rng, size, each, most):
    """A number of items for a file of about this size."""
    return max(2, min(most, size // each))


def many_labels(rng, size, honest):
    """As many labels as the size allows, with every loss."""
    k = scaled(rng, size, 60, 120_000)
    kind = rng.choice(["integer", "real", "text", "codes"])
    if kind == "integer":
        domain, values = IntegerDomain(0, k - 1), [float(i) for i in range(k)]
    elif kind == "real":
        domain = RealDomain(rng.choice([0.0, -3.7]), 1000.3, k, rng.choice(["nearest", "unbiased"]))
        values = [float(y) for y in domain.labels()]
    else:
        values = [f"c{i}" if kind == "text" else i for i in range(k)]
        domain = CategoricalDomain(tuple(values), values[0])
    few = randomized_response(values[:2], [i % 2 for i in range(k)], Fraction(1))
    randomizer = few if rng.random() < 0.5 else randomized_response(values, range(k), Fraction(1))
    losses = ["squared", "absolute", "zero_one"] if kind in ("integer", "real") else ["zero_one"]
    loss = rng.choice(losses)
    # The claims are those of two labels: they fail somewhere, but the work before that is real.
    small = IntegerDomain(0, 1) if kind in ("integer", "real") else domain
    if kind in ("text", "codes"):
        return certified(domain, few, loss)
    donor = certified(small, randomized_response([0.0, 1.0], range(2), Fraction(1)), loss)
    certificate = certificate_of(donor)
    certificate["label"]["domain"] = domain.to_json()
    certificate["labels"] = k
    certificate["prior"]["weights"] = [rng.choice([1, 2**199 + 1])] * k
    ratio = few if randomizer is few else randomizer
    certificate["exact"].update(_ratio_fields(ratio))
    certificate["privacy"]["epsilon_label_bound"] = float(
        Fraction(certificate["exact"]["epsilon_label_bound"])
    )
    return write_model(domain, randomizer, certificate)


def _ratio_fields(randomizer):
    ratio = analyse(randomizer).worst_ratio()
    return {"realised_ratio": str(ratio), "epsilon_label_bound": str(least_log_bound(ratio))}


def duals(rng, size, honest):
    """Dual values with many decimals, unlike denominators, and every class of the bound."""
    k = scaled(rng, size, 150, 60_000)
    loss = rng.choice(["squared", "squared", "absolute", "zero_one"])
    domain = IntegerDomain(0, k - 1)
    randomizer = randomized_response([0.0, float(k - 1)], [i % 2 for i in range(k)], Fraction(1))
    wide = rng.choice([2, 2**40, 2**199])
    weights = [rng.randrange(1, wide) for _ in range(k)]
    model = certified(domain, randomizer, loss, weights=weights)
    exponent = rng.choice([0, -20, -300, -999])
    over = rng.choice(["unbiased", "any", "max", "penalty"])

    def number():
        return f"{rng.choice(['', '-'])}0.{rng.randrange(10**38):039d}e{exponent}"

    def change(certificate):
        certificate["optimality"] = {
            "over": over,
            "amount": rng.choice(["0", "1", "3/7", "9" * 1000 + "/" + "7" * 1000]),
            "alpha": [rng.choice([number(), f"-{k}"]) for _ in range(k)],
            "beta": [number() if loss == "squared" and over != "any" else "0" for _ in range(k)],
        }

    return restated(model, change)


def radii(rng, size, honest):
    """A bound of very many labels from few numbers, or from as many, with a wide unit."""
    k = scaled(rng, size, rng.choice([12, 60]), 1_000_000)
    domain = IntegerDomain(0, k - 1)
    if rng.random() < 0.3:
        domain = RealDomain(-3.7, 1000.3, k, "nearest")
    randomizer = randomized_response([0.0, float(k - 1)], [i % 2 for i in range(k)], Fraction(1))
    wide = rng.choice([2, 2**40])
    weights = [rng.randrange(1, wide) for _ in range(k)]
    loss = rng.choice(["squared", "absolute"])
    certificate = certificate_of(certified(domain, randomizer, loss, weights=weights))
    count = max(2, min(k, rng.choice([2, 100, 10_000, k])))
    knots = [0, *sorted(rng.sample(range(1, k - 1), count - 2)), k - 1]
    longest = rng.choice([0, k // 4, 2**40])
    unit = rng.choice(["1", "1/3", f"{10**999 + 7}/{10**998 + 9}", f"1/{2**40}"])
    certificate["format_version"] = "1.5"
    certificate["optimality"] = {
        "over": "any",
        "amount": "0",
        "unit": unit,
        "knots": knots,
        "radii": [rng.randrange(longest + 1) for _ in knots],
    }
    certificate["utility"].update(loss_lower_bound=1.0, certified_gap=0.5)
    certificate["exact"]["loss_lower_bound"] = "1"
    return write_model(domain, randomizer, certificate)


def segments(rng, size, honest):
    """Windows over many segments, outputs with many segments, and a loss that visits them all."""
    count = scaled(rng, size, 40, 60_000)
    labels = rng.choice([2, 100, 3000])
    outputs = rng.choice([2, 50, max(2, count // 4)])
    outputs = min(outputs, count)
    extra = tuple(Segment(rng.randrange(1, 4), i % outputs) for i in range(2 * count))
    total = sum(s.length for s in extra)
    window = rng.randrange(1, total)
    bits = max(20, (outputs * 3 + total).bit_length())
    rest = (1 << bits) - window
    base = [rest // outputs] * outputs
    base[0] += rest - sum(base)
    end = total - window  # the furthest window must reach the end of the line
    offsets = (end, *(rng.randrange(end + 1) for _ in range(labels - 1)))
    scale = rng.choice([1.0, 1e-300, 1e300])
    shift = rng.choice([0.0, 5e-324])
    values = tuple(sorted({shift + scale * i / outputs for i in range(1, outputs + 1)}))
    if len(values) < outputs:
        values = tuple(float(i) for i in range(1, outputs + 1))
    randomizer = WindowRandomizer(bits, tuple(base), extra, offsets, values)
    domain = IntegerDomain(0, labels - 1)
    donor = randomized_response([0.0, 1.0], [i % 2 for i in range(labels)], Fraction(1))
    loss = rng.choice(["squared", "absolute", "zero_one", "poisson"])
    model = certified(domain, donor, "squared")
    certificate = certificate_of(model)
    certificate["utility"]["loss"] = loss
    if (2 * count) ** 2 / outputs < 20_000_000:
        certificate["exact"].update(_ratio_fields(randomizer))
        certificate["privacy"]["epsilon_label_bound"] = float(
            Fraction(certificate["exact"]["epsilon_label_bound"])
        )
    if rng.random() < 0.3:
        certificate["exact"]["noisy_label_loss"] = None
    return write_model(domain, randomizer, certificate)


def tables(rng, size, honest):
    """A table of as many entries as it may have."""
    entries = scaled(rng, size, 10, 1 << 19)
    k = rng.choice([2, 16, 256])
    m = max(2, min(entries // k, 1 << 15))
    counts = []
    for _ in range(k):
        row = [rng.randrange(1, 9) for _ in range(m)]
        row[rng.randrange(m)] += (1 << 40) // m * m - sum(row) if m & (m - 1) == 0 else 0
        row[0] += (1 << 40) - sum(row)
        counts.append(tuple(row))
    values = tuple(float(i + 1) for i in range(m))
    loss = rng.choice(["squared", "absolute", "zero_one", "poisson"])
    users = rng.choice([None, 10_000])
    return certified(
        IntegerDomain(0, k - 1), TableRandomizer(40, tuple(counts), values), loss, users=users
    )


def even(words, count):
    quotient, rest = divmod(words, count)
    return tuple([quotient + 1] * rest + [quotient] * (count - rest))


def additive(rng, size, honest):
    """Noise with many blocks, long shapes, or many labels."""
    entries = scaled(rng, size, 16, 200_000)
    period = max(1, rng.choice([entries, entries // 10, 10]))
    reach = max(1, (entries - period) // 2)
    spacing = rng.choice([s for s in (1, 10, period) if period % s == 0])
    words, fold = 1 << 44, reach * period
    randomizer = AdditiveRandomizer(
        word_bits=44,
        labels=period // spacing + 1,
        spacing=spacing,
        blocks=even(words, 2 * (reach + 1)),
        shapes=(even(words, period), even(words, period)),
        low=period - fold if reach > 1 else 0,
        high=fold,
        origin=0.0,
        unit=rng.choice([1.0, 0.1, 1e-100, 1e100]),
    )
    domain = IntegerDomain(0, period // spacing)
    return certified(
        domain, randomizer, rng.choice(["squared", "absolute"]), users=rng.choice([None, 10_000])
    )


def users(rng, size, honest):
    """Many labels of one user."""
    k = rng.choice([2, 100, 1000])
    epsilon = rng.choice([Fraction(1, 1000), Fraction(1), Fraction(20)])
    randomizer = randomized_response([float(i) for i in range(k)], range(k), epsilon)
    model = certified(IntegerDomain(0, k - 1), randomizer, "zero_one", users=rng.choice([2, 9999]))
    text = rng.choice(["0." + "9" * 40, "1e-999", "0", "1e300"])

    def change(certificate):
        for row in certificate["composition"]["epsilon_at_delta"]:
            row["epsilon"] = text

    return restated(model, change)


def several(rng, size, honest):
    """Two or three files in one."""
    data = b""
    while len(data) < size:
        data += rng.choice([honest, bomb(rng, min(size, MIB), honest)])
    return data[:LARGEST]


GENERATORS = {
    f.__name__: f
    for f in (
        bomb,
        packed,
        plain_numbers,
        nested,
        noise,
        altered,
        several,
        json_bomb,
        long_fields,
        many_labels,
        duals,
        radii,
        segments,
        tables,
        additive,
        users,
    )
}


def small_file():
    """What the generators start from."""
    labels = [float(i) for i in range(10)]
    return certified(
        IntegerDomain(0, 9), randomized_response(labels, range(10), Fraction(1)), "squared"
    )


def make(name, seed, honest, size=None):
    """The file of a generator and a seed, of a random size unless one is given."""
    rng = random.Random(f"{name} {seed}")
    size = size or int(2 ** rng.uniform(8, 26))
    return GENERATORS[name](rng, size, honest)[:LARGEST]
