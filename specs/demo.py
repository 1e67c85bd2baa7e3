"""The quickstart, step by step: compile, verify, randomize, and what to look at (`make demo`)."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

HERE = Path(__file__).parent.relative_to(Path.cwd())
SPEC, DATA = HERE / "doctor-visits.yaml", HERE / "data" / "randhie.parquet"


def run(*command: object) -> str:
    """Echo and run a labeldp command; returns what it printed."""
    words = ["labeldp", *map(str, command)]
    print(f"\n$ {' '.join(words)}", flush=True)
    done = subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE)  # noqa: S603
    print(done.stdout, end="", flush=True)
    return done.stdout


def main(build: Path) -> None:
    """Run the quickstart into ``build``."""
    artifact = run("compile", SPEC, "-o", build).strip()
    run("verify", artifact, "--spec", SPEC)
    private = build / "private.parquet"
    run("randomize", artifact, DATA, "-o", private)

    certificate = json.loads(Path(artifact).with_suffix(".certificate.json").read_text())
    before, after = pq.read_table(DATA), pq.read_table(private)
    print("\nvisits    before    after, as the training team sees them")
    for row in range(5):
        print(f"row {row}  {before['mdvis'][row].as_py():>8}  {after['mdvis'][row].as_py():>10.3f}")
    counts = pc.value_counts(after["mdvis"]).to_pylist()
    for item in sorted(counts, key=lambda item: item["values"]):
        print(f"output {item['values']:.3f} was drawn {item['counts']:,} times")
    privacy = certificate["privacy"]
    print(
        f"\nEach label was randomized with ε = {privacy['epsilon_label']:.4g} (proved: at most "
        f"{privacy['epsilon_label_bound']:.12g}); the label histogram cost "
        f"{privacy['epsilon_prior']:.4g}; {privacy['epsilon_total']:.4g} in total.\n"
        f"The certificate is in {artifact} and beside it."
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
