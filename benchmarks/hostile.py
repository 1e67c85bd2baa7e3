"""Hostile files through ``labeldp verify``: never above its budget, never a traceback.

    python benchmarks/hostile.py [--files 2000] [--seed 1] [--keep FOLDER] [--only NAME]

Each file is made by a generator of ``shared/hostile_files.py``, in sizes up to 64 MiB, and
verified by the command in a process of its own, of which processor time and peak memory are
measured. Prints a table by generator. Exit code 1 if a file took 20 s or more of processor time or
2 GB, ended with another exit code than 1, 2, or 0 for what verifies, or with a traceback; it is
kept in the folder ``--keep``.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from pathlib import Path

import labeldp_compile.cli.verify
from benchmarks.shared.hostile_files import GENERATORS, MIB, make, small_file
from labeldp_compile.cli import main as labeldp

MAX_SECONDS, MAX_BYTES = 20.0, 2_000_000_000
CHEAP = ["bomb", "packed", "json_bomb", "long_fields", "bomb", "json_bomb"]  # once more a round


def in_child(work):
    """(exit code, seconds of processor time, bytes at the peak) of a function in a child."""
    child = os.fork()
    if child == 0:
        try:
            code = work() or 0
        except BaseException:
            traceback.print_exc()
            code = 99
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    _, status, usage = os.wait4(child, 0)
    return (
        os.waitstatus_to_exitcode(status),
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * 1024,
    )


def verify(path, said):
    """Run the command; what it says goes to a file."""

    def work():
        sink = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        for name, number in (("stdout", 1), ("stderr", 2)):
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))
        try:
            labeldp(["verify", str(path)], prog_name="labeldp")
        except SystemExit as error:
            return error.code
        return 0

    return in_child(work)


def try_one(name, seed, folder, honest):
    """(what is wrong or None, seconds, bytes, size, last line)."""
    path, said = folder / "file.onnx", folder / "said"

    def write():
        path.write_bytes(make(name, seed, honest))

    made, _, _ = in_child(write)
    if made:
        return f"the generator failed: {name} {seed}", 0.0, 0, 0, ""
    return verdict(path, said)


def verdict(path, said):
    """The same of a file; what the command says goes to ``said``."""
    code, seconds, peak = verify(path, said)
    lines = said.read_text(encoding="utf-8", errors="replace").strip().split("\n")
    wrong = None
    if code not in (1, 2) and not (code == 0 and any(": verified. " in line for line in lines)):
        wrong = f"exit code {code}"
    elif any("Traceback" in line for line in lines):
        wrong = "a traceback"
    elif seconds >= MAX_SECONDS:
        wrong = f"{seconds:.1f} s"
    elif peak >= MAX_BYTES:
        wrong = f"{peak / 1e9:.2f} GB"
    said_first = next((line for line in lines if line.startswith("FAILED")), lines[-1])
    return wrong, seconds, peak, path.stat().st_size, f"{code}: {said_first[:150]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for files that must not happen")
    parser.add_argument("--only", choices=sorted(GENERATORS))
    parser.add_argument("--say", action="store_true", help="a line for each file")
    options = parser.parse_args()
    assert labeldp_compile.cli.verify  # loaded before the children are made
    names = [options.only] if options.only else list(GENERATORS) + CHEAP
    honest, found, began = small_file(), 0, time.monotonic()
    most = defaultdict(lambda: [0, 0, 0, 0.0, 0, 0])
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.files):
            name, seed = names[number % len(names)], f"{options.seed}.{number}"
            wrong, seconds, peak, size, last = try_one(name, seed, Path(folder), honest)
            row = most[name]
            row[0] += 1
            row[1] += last.startswith("1")
            row[2] += last.startswith("2")
            row[3:] = max(row[3], seconds), max(row[4], peak), max(row[5], size)
            if wrong or options.say:
                print(
                    f"{wrong or 'ok'}: {name} {seed}: {size:,} bytes, {seconds:.1f} s, "
                    f"{peak / 1e9:.2f} GB: {last}",
                    file=sys.stderr,
                    flush=True,
                )
            if wrong:
                found += 1
                if options.keep and size:
                    (options.keep / f"{name}-{seed}").write_bytes(make(name, seed, honest))
    print("| generator | files | failed | not checked | most s | most GB | largest MiB |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, (files, failed, refused, seconds, peak, size) in most.items():
        print(
            f"| {name} | {files} | {failed} | {refused} | {seconds:.1f} | {peak / 1e9:.2f} | "
            f"{size / MIB:.1f} |"
        )
    print(f"{found} of {options.files} must not happen; {time.monotonic() - began:.0f} s")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
