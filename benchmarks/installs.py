"""How much disk the install of each distribution takes, with all that pip brings along.

Builds the wheels and installs each into an empty folder; needs a package index and, for a moment,
3 GB of disk. Prints a markdown table: MB (10^6 bytes) in all, the number of distributions, and the
largest packages.
"""

import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = {"labeldp-verify": "verifier", "labeldp-runtime": "runtime", "labeldp-learn": "learn"}
SOURCES["labeldp"] = "."
SOURCES["labeldp-trainer"] = "trainer"
INSTALLS = {
    "labeldp-verify": "an auditor",
    "labeldp-runtime": "a service that randomizes",
    "labeldp-runtime[verify]": "one that also verifies what it loads",
    "labeldp": "the compiler and the command",
    "labeldp-trainer": "training, JAX for CPU",
}
LARGEST = 4


def pip(*arguments):
    """Run pip; what it says goes to standard error."""
    command = [sys.executable, "-m", "pip", *map(str, arguments), "--quiet"]
    subprocess.run(command, check=True, stdout=sys.stderr)


def megabytes(path):
    """Of a file or of all files below a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def main():
    """Install one after the other."""
    print("| install | for | MB | distributions | of that, MB |")
    print("|---|---|---:|---:|---|")
    with tempfile.TemporaryDirectory() as name:
        wheels = Path(name)
        for source in SOURCES.values():
            pip("wheel", "--no-deps", "--wheel-dir", wheels, ROOT / source)
        for install, use in INSTALLS.items():
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder)
                pip("install", "--find-links", wheels, "--target", place, install)
                parts = {path.name: megabytes(path) for path in place.iterdir()}
                count = len(list(metadata.distributions(path=[folder])))
            largest = sorted(parts, key=parts.get, reverse=True)[:LARGEST]
            shown = ", ".join(f"{part} {parts[part]:.0f}" for part in largest)
            print(
                f"| {install} | {use} | {sum(parts.values()):.0f} | {count} | {shown} |", flush=True
            )


if __name__ == "__main__":
    main()
