"""A second verifier: the check that Coq proved sufficient, extracted to OCaml, against Python's.

2,000 integer tables, half of them random and half with an integer altered, each with claims of a
ratio at, a hair beside and far from what it keeps to. Both say whether the claim holds. Run with no
arguments, or with a number of tables and a seed. Needs coqc, ocamlfind and ocamlopt.
"""

import sys
import tempfile
import time
from pathlib import Path

from tests.proofs.second_verifier import ask, build, compile_theory, questions


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
