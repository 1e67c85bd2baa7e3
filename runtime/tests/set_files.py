"""Artifacts whose private labels are sets of labels, for tests in several languages and engines."""

from runtime.tests.helpers import file

LOOK_ALIKES = ["é", "e\u0301", "", "日本 🙂", "red", "red "]  # the first two look the same
CODES = [-(2**63), -5, 3, 2**53, 2**53 + 1, 2**63 - 1, 0]


NAMES = [
    "all subsets of text",
    "a design",
    "codes",
    "integers",
    "many sets",
    "large ε, text",
    "large ε, codes",
    "large ε, integers",
]

# Labels for columns of tables: all that there are, nulls, and what the rules are for.
COLUMNS = {
    "all subsets of text": [*LOOK_ALIKES, None, "other", "E\u0301"],
    "codes": [*CODES, None, 1, -6],
    "integers": [*range(-3, 7), None, 99, -(2**53)],
}


def model(name):
    """The bytes of one of them."""
    return file(f"sets, {name}")


def sizes_and_outputs(certificate):
    """The number of labels, and every private label, in the order of the outputs."""
    domain = certificate["label"]["domain"]
    labels = domain.get("values") or list(range(domain["min"], domain["max"] + 1))
    blocks = certificate["sets"]["blocks"]
    return len(labels), labels if blocks is None else list(range(len(blocks)))


def _first(block):
    return lambda sets: sets["blocks"].__setitem__(0, block)


# What a damaged file may say of the sets of seven codes, each of two digits; verify refuses all.
DAMAGE = {
    "null": lambda c: c.update(sets=None),
    "without blocks": lambda c: c["sets"].pop("blocks"),
    "a block too few": lambda c: c["sets"]["blocks"].pop(),
    "a block too many": lambda c: c["sets"]["blocks"].append("07"),
    "blocks that are text": lambda c: c["sets"].update(blocks="07" * c["outputs"]),
    "blocks that are an object": lambda c: c["sets"].update(blocks={"0": "07"}),
    "an empty block": lambda c: _first("")(c["sets"]),
    "a digit too many": lambda c: _first("007")(c["sets"]),
    "a class too many": lambda c: _first("87")(c["sets"]),
    "a prefix": lambda c: _first("0x")(c["sets"]),
    "other digits": lambda c: _first("٠٧")(c["sets"]),
}

_WIDE = {"2^40": 2**40, "2^53": 2**53, "2^63": 2**63}
RANGES = {  # of a damaged file of integers; no work may depend on them
    name: lambda c, reach=reach: c["label"]["domain"].update(min=-reach, max=reach)
    for name, reach in _WIDE.items()
}
