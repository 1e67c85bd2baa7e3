"""Artifacts of every form, decoded, and many proofs in one file for Coq: it starts slowly."""

import re
from pathlib import Path

from labeldp_verify import check_bytes
from labeldp_verify.kernel import integers_of

from labeldp_compile.export.coq import proof_of, run_coq

ROOT = Path(__file__).parents[2]
OLD = sorted((ROOT / "tests/golden").rglob("*.onnx"))


def decoded(data):
    report = check_bytes(data).require()
    return report.artifact


def old_path(name):
    """The oldest file of that name."""
    return next(path for path in OLD if path.stem == name)


def old_file(name):
    """The verified artifact, and its integers."""
    data = old_path(name).read_bytes()
    return decoded(data), integers_of(data)


def proof_of_file(data):
    """With its lookup, where that is small."""
    return short_proof(decoded(data), integers_of(data), most_entries=700)


def checked(theory, proofs, more=None):
    """Coq's answer to several proofs in one file, whose theorems must all rest on nothing."""
    parts, every = [], []
    for i, proof in enumerate(proofs):
        text = re.sub(r"^Print Assumptions .*\n", "", proof.text, flags=re.M)
        parts.append(f"Module m{i}.\n{text}\n{more[i] if more else ''}End m{i}.\n")
        every += (f"m{i}.{name}" for name in proof.theorems)
    text = "".join(parts) + all_closed(every)
    assert text.isascii()
    return run_coq(text, 1, options=["-Q", str(theory), "LabelDP", "-w", "none"])


def all_closed(names):
    """Text that prints what any of the theorems rests on, at once: it takes Coq a second each."""
    return f"Definition every := ({', '.join(['I', *names])}).\nPrint Assumptions every.\n"


def short_proof(found, read, **options):
    return proof_of(found, read, self_contained=False, **options)
