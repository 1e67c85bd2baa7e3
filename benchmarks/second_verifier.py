"""A second verifier: the check that Coq proved sufficient, extracted to OCaml, against Python's.

2,000 integer tables, half of them random and half with an integer altered, each with claims of a
ratio at, a hair beside and far from what it keeps to. Both say whether the claim holds. Run with no
arguments, or with a number of tables and a seed. Needs coqc, ocamlfind and ocamlopt.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from labeldp_verify.analysis import analyse
from labeldp_verify.decode.alias import column_sums
from labeldp_verify.forms import AdditiveRandomizer, TableRandomizer, WindowRandomizer
from labeldp_verify.forms.randomizers import Segment, check_additive, check_table
from labeldp_verify.graph.alias_table import alias_entries, column_bits

from labeldp_compile.export.coq import PREFIX
from tests.proofs.theory import compile_theory, run
from verifier.tests.integers import composition, near_constant, random_additive, random_table

PROGRAMS = Path(__file__).parent
Question = tuple[str, bool]  # a line for the program, and the verifier's verdict
Form = WindowRandomizer | TableRandomizer | AdditiveRandomizer


def build(folder: Path, theory_folder: Path) -> Path:
    """The program, built in ``folder`` from the theory that was compiled in ``theory_folder``."""
    for name in ("Extract.v", "verdicts.ml"):
        shutil.copy(PROGRAMS / name, folder)
    run("coqc", "-q", "-Q", str(theory_folder), PREFIX, "Extract.v", cwd=folder)
    files = ("check.mli", "check.ml", "verdicts.ml")
    run("ocamlfind", "ocamlopt", "-w", "-a", *files, "-o", "verdicts", cwd=folder)
    return folder / "verdicts"


def ask(program: Path, lines: Sequence[str]) -> list[bool]:
    """The program's verdicts."""
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return [line == "1" for line in done.stdout.splitlines()]


def questions(seed: int, tables: int) -> list[Question]:
    """Tables of all forms, half of them random and half with an integer altered, each with claims
    around what it really keeps to."""
    generator = random.Random(seed)
    makers = (_window_questions, _table_questions, _entry_questions, _additive_questions)
    found: list[Question] = []
    for i in range(tables // 2):
        found += makers[i % len(makers)](generator)
    return found


def line_of(randomizer: Form, ratio: Fraction) -> str:
    """The question whether the integers keep to a ratio."""
    r = randomizer
    if isinstance(r, WindowRandomizer):
        extra = [len(r.extra), *(x for s in r.extra for x in (s.length, s.output))]
        return _line("w", ratio, [r.word_bits, *_listed(r.base), *extra, *_listed(r.offsets)])
    if isinstance(r, TableRandomizer):
        rows = [x for row in r.counts for x in _listed(row)]
        return _line("t", ratio, [r.word_bits, len(r.values), len(r.counts), *rows])
    weights = [x for part in (r.blocks, *r.shapes) for x in _listed(part)]
    return _line("a", ratio, [r.word_bits, r.labels, r.spacing, *weights, r.low, r.high])


def verdict(randomizer: Form, ratio: Fraction) -> bool:
    """What the verifier's steps on rows and on privacy say."""
    analysis = analyse(randomizer)
    try:
        if isinstance(randomizer, TableRandomizer):
            check_table(randomizer)
        elif isinstance(randomizer, AdditiveRandomizer):
            check_additive(randomizer)
    except ValueError:
        return False
    return analysis.why_not_distributions() is None and analysis.worst_ratio() <= ratio


def _line(form: str, ratio: Fraction, numbers: Iterable[int]) -> str:
    every = (ratio.numerator, ratio.denominator, *numbers)
    return " ".join([form, *(f"{number:x}" for number in every)])


def _listed(numbers: Sequence[int]) -> list[int]:
    return [len(numbers), *numbers]


def _asked(generator: random.Random, randomizers: Iterable[Form]) -> list[Question]:
    """Each with the ratio that it keeps to, and with ones a hair or much smaller or larger."""
    found = []
    for r in randomizers:
        try:
            exact = analyse(r).worst_ratio()
        except (ValueError, ZeroDivisionError, IndexError):
            exact = Fraction(2)
        hair = Fraction(1, 1 << generator.choice([8, 40, 130]))
        for ratio in {exact, exact - hair, exact + hair, exact * Fraction(9, 10)}:
            if ratio > 0:
                found.append((line_of(r, ratio), verdict(r, ratio)))
    return found


def _parts(generator: random.Random, total: int, parts: int) -> tuple[int, ...]:
    """Integers ≥ 1 with this sum: nearly equal, or of all sizes."""
    return generator.choice([near_constant, composition])(generator, total, parts)


def _nudged(generator: random.Random, numbers: Sequence[int]) -> tuple[int, ...]:
    """One integer changed; a list of weights then no longer fills the word."""
    changed = list(numbers)
    i = generator.randrange(len(changed))
    step = generator.choice([1, -1, 1 << generator.randrange(20), -changed[i]])
    changed[i] += step
    return tuple(changed)


def _window_questions(generator: random.Random) -> list[Question]:
    bits, m = generator.randrange(5, 63), generator.randrange(1, 9)
    words = 1 << bits
    if generator.random() < 0.5:
        T = generator.randrange(max(m, words // 8), words + 1)
    else:
        T = generator.randrange(m + words // 2, words) if words // 2 > m else words
    base = _parts(generator, T, m) if 2 * m < T else (T - m + 1, *(1,) * (m - 1))
    X = words - T
    total = max(X + generator.randrange(1 + words // 2), 16)
    lengths = _parts(generator, total, generator.randrange(1, 10))
    extra = tuple(Segment(n, generator.randrange(m)) for n in lengths if n > 0)
    last = sum(s.length for s in extra) - X
    offsets = tuple(generator.randrange(last + 1) for _ in range(generator.randrange(1, 5)))
    r = WindowRandomizer(bits, base, extra, offsets, tuple(map(float, range(m))))
    altered = generator.choice(
        [
            replace(r, base=_nudged(generator, base)),
            replace(r, offsets=_nudged(generator, offsets)),
            replace(r, extra=(Segment(extra[0].length + 1, extra[0].output), *extra[1:])),
            replace(r, offsets=(*offsets, last + generator.choice([0, 1]))),
        ]
    )
    return _asked(generator, [r, altered])


def _table_questions(generator: random.Random) -> list[Question]:
    r = _table(generator)
    rows = list(r.counts)
    y = generator.randrange(len(rows))
    rows[y] = generator.choice([_nudged, _moved])(generator, rows[y])
    return _asked(generator, [r, replace(r, counts=tuple(rows))])


def _table(generator: random.Random) -> TableRandomizer:
    bits, values = generator.randrange(6, 65), tuple(map(float, range(generator.randrange(1, 9))))
    return random_table(generator, generator.randrange(1, 5), values, bits, _parts)


def _moved(generator: random.Random, weights: Sequence[int]) -> tuple[int, ...]:
    """One word given from one item to another: the sum stays."""
    changed = list(weights)
    changed[generator.randrange(len(changed))] += 1
    changed[generator.randrange(len(changed))] -= 1
    return tuple(changed)


def _entry_questions(generator: random.Random) -> list[Question]:
    """Alias tables, with an entry altered in any way: the weights are what the decoder reads."""
    r = _table(generator)
    c, m = column_bits(len(r.values)), len(r.values)
    rows = [alias_entries(counts, r.word_bits) for counts in r.counts]
    changed = [list(row) for row in rows]
    row = changed[generator.randrange(len(rows))]
    at = generator.randrange(len(row))
    choices: list[Callable[[], int]] = [
        lambda: generator.randrange(1 << 64),
        lambda: max(0, min(row[at] + generator.choice([1, -1, 1 << c]), (1 << 64) - 1)),
        lambda: generator.randrange(1 << r.word_bits),
    ]
    row[at] = generator.choice(choices)()
    found = []
    for entries in (rows, changed):
        weights = column_sums(np.array(entries, dtype=np.uint64), r.word_bits)
        counts = tuple(tuple(line[:m]) for line in weights)
        drawn = not any(any(line[m:]) for line in weights)
        decoded = replace(r, counts=counts)
        exact = analyse(decoded).worst_ratio() if min(map(min, counts)) > 0 else Fraction(2)
        for ratio in (exact, exact - Fraction(1, 1 << 130)):
            numbers = [r.word_bits, c, m, len(entries), *(x for e in entries for x in _listed(e))]
            found.append((_line("e", ratio, numbers), drawn and verdict(decoded, ratio)))
    return found


def _additive_questions(generator: random.Random) -> list[Question]:
    labels, spacing = generator.randrange(2, 6), generator.randrange(1, 4)
    reach, bits = generator.randrange(1, 4), generator.randrange(9, 65)
    r = random_additive(generator, labels, spacing, reach, bits, row=_parts)
    altered = generator.choice(
        [
            replace(r, blocks=_moved(generator, r.blocks)),
            replace(r, blocks=_nudged(generator, r.blocks)),
            replace(r, shapes=(_moved(generator, r.shapes[0]), r.shapes[1])),
            replace(r, low=r.low - 1),
            replace(r, high=r.high + 1),
        ]
    )
    return _asked(generator, [r, altered])


def main(tables: int = 2_000, seed: int = 0) -> None:
    with tempfile.TemporaryDirectory() as folder:
        compile_theory(Path(folder), ["Check"])
        program = build(Path(folder), Path(folder))
        asked = questions(seed, tables)
        start = time.perf_counter()
        verdicts = ask(program, [line for line, _ in asked])
        seconds = time.perf_counter() - start
    for form, name in zip("wtea", ("window", "table", "alias tables", "additive"), strict=True):
        pairs = [
            (ours, theirs)
            for (line, ours), theirs in zip(asked, verdicts, strict=True)
            if line[0] == form
        ]
        held = sum(ours for ours, _ in pairs)
        wrong = sum(ours != theirs for ours, theirs in pairs)
        print(f"{name:13} {len(pairs):6,} questions, {held:6,} hold, {wrong} disagreements")
    print(f"{len(asked):,} verdicts of the extracted check in {seconds:.1f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
