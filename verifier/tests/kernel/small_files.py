"""Small files of every form, domain and graph: few enough words that all can be tried."""

from collections.abc import Iterator
from dataclasses import replace

from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    GroupColumn,
    GroupedWindows,
    Groups,
    IntegerDomain,
    JointDomain,
    RealDomain,
    TableRandomizer,
    WindowRandomizer,
)
from labeldp_verify.forms.randomizers import Segment
from labeldp_verify.graph import BucketGrid, write_model

INTEGERS = IntegerDomain(-1, 2)
TEXT = CategoricalDomain(("a", "b", "", "é"), "")
CODES = CategoricalDomain((7, -2, 5, 0), 5)
DOMAINS = {
    "integer": INTEGERS,
    "integer-default": IntegerDomain(-1, 2, 0),
    "real": RealDomain(0.0, 3.0, 4),
    "real-default": RealDomain(0.5, 2.0, 4, default=1.0),
    "real-unbiased": RealDomain(0.0, 6.0, 4, "unbiased"),
    "text": TEXT,
    "codes": CODES,
    "joint": JointDomain.of([IntegerDomain(0, 1), CategoricalDomain(("x", "y"), "y")]),
}
GRIDS = {
    "one": None,
    "two": BucketGrid(0, 1),
    "three": BucketGrid(0, 1, 0, 22),
}
GROUPS = {
    "text": Groups.of(("u", "v")),
    "numbered": Groups.of((0, 1)),
    "bands": Groups.each(GroupColumn("age", bands=(18.0, 65.0))),
    "columns": Groups.each(GroupColumn("n", (7, -2)), GroupColumn("x", bands=(0.0,))),
}


def answers(domain, count):
    """Values of this many answers, of the type that the domain's labels have."""
    if isinstance(domain, CategoricalDomain):
        return tuple(domain.values[:count])
    return tuple(1.5 * i - 1 for i in range(count))


def window(domain, base=(4, 3, 5), extra=(10, 8, 12), offsets=(0, 3, 7, 10), bits=5):
    """T = 12 of 32 words, three answers."""
    segments = tuple(Segment(length, i) for i, length in enumerate(extra))
    return WindowRandomizer(bits, base, segments, offsets, answers(domain, len(base)))


def table(domain):
    """Counts of three answers that sum to 32."""
    counts = ((16, 8, 8), (8, 16, 8), (8, 8, 16), (12, 12, 8))
    return TableRandomizer(5, counts, answers(domain, 3))


def additive(labels=4):
    """Noise of 3 places a block and six blocks."""
    shapes = ((6, 5, 5), (5, 6, 5))
    return AdditiveRandomizer(4, labels, 1, (1, 3, 4, 4, 3, 1), shapes, -2, 5, -1.0, 1.0)


def grouped(groups, domain=INTEGERS):
    """A table for each group, of two sizes of words."""
    tables = [window(domain), window(domain, (5, 5, 2), (12, 9, 6), (0, 1, 3, 7), 5)]
    small = window(domain, (2, 3), (8, 6), (0, 1, 2, 3), 4)
    tables = [tables[i % 2] for i in range(groups.tables - 1)] + [small]
    return GroupedWindows(groups, tuple(tables))


PORTABLE = {"format_version": "1.8", "portable": {"limbs_per_word": 2}}


def portable_files() -> Iterator[tuple[str, bytes]]:
    """Those that take words in limbs."""
    noise = replace(additive(), origin=0.0)
    for name, domain in DOMAINS.items():
        grid = GRIDS[list(GRIDS)[len(name) % 3]]
        yield f"window-{name}-portable", write_model(domain, window(domain), PORTABLE, grid)
    for name in ("text", "real", "joint"):
        made = write_model(DOMAINS[name], table(DOMAINS[name]), PORTABLE)
        yield f"table-{name}-portable", made
    long_words = {**PORTABLE, "portable": {"limbs_per_word": 3}}
    yield "table-integer-portable", write_model(INTEGERS, table(INTEGERS), long_words)
    for name in ("real", "real-unbiased"):
        yield f"additive-{name}-portable", write_model(DOMAINS[name], noise, PORTABLE)
    for name, groups in GROUPS.items():
        yield f"grouped-{name}-portable", write_model(INTEGERS, grouped(groups), PORTABLE)


def small_files() -> Iterator[tuple[str, bytes]]:
    """Names and bytes."""
    for name, domain in DOMAINS.items():
        older = "1.3" if name == "joint" else "1.0"
        for version in (older, "1.4"):
            stated = {"format_version": version}
            grid = list(GRIDS)[len(name) % 3]
            made = write_model(domain, window(domain), stated, GRIDS[grid])
            yield f"window-{name}-{version}-{grid}", made
        yield f"table-{name}", write_model(domain, table(domain), {})
    for grid, layout in GRIDS.items():
        for version in ("1.0", "1.4"):
            stated = {"format_version": version}
            made = write_model(INTEGERS, window(INTEGERS), stated, layout)
            yield f"window-{grid}-{version}", made
    for name in ("integer", "integer-default", "real-unbiased"):
        domain = DOMAINS[name]
        noise = replace(additive(), origin=float(domain.min))
        for version in ("1.0", "1.4"):
            made = write_model(domain, noise, {"format_version": version})
            yield f"additive-{name}-{version}", made
    for name, groups in GROUPS.items():
        yield f"grouped-{name}", write_model(INTEGERS, grouped(groups), {})
        joint = DOMAINS["joint"]
        yield f"grouped-joint-{name}", write_model(joint, grouped(groups, joint), {})
    yield from portable_files()
