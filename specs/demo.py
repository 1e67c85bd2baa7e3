"""The README's commands, one after the other, and what to look at (`make demo`)."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

DATA = Path(__file__).parent.relative_to(Path.cwd()) / "data" / "randhie.parquet"


def run(*command: object) -> str:
    """Echo and run a labeldp command; returns what it printed."""
    words = ["labeldp", *map(str, command)]
    print(f"\n$ {' '.join(words)}", flush=True)
    done = subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE)  # noqa: S603
    print(done.stdout, end="", flush=True)
    return done.stdout.strip()


def main(build: Path) -> None:
    """Run the commands into ``build``."""
    spec, private = build / "mdvis.yaml", build / "private.parquet"
    run("init", DATA, "--column", "mdvis", "--range", "0..24", "--yes", "-o", spec)
    run("plan", spec)
    artifact = run("compile", spec, "-o", build)
    run("verify", artifact, "--spec", spec)
    run("randomize", artifact, DATA, "-o", private)

    before, after = (pq.read_table(path)["mdvis"].to_numpy() for path in (DATA, private))
    print("\nvisits    before    after, as the training team sees them")
    for row, (true, shown) in enumerate(zip(before[:5], after[:5], strict=True)):
        print(f"row {row}  {true:>8}  {shown:>10.3f}")
    print(f"mean   {before.mean():>8.3f}  {after.mean():>10.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
