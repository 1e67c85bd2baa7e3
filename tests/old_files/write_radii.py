"""Write artifacts whose lower bound is proved by radii: ``python -m tests.old_files.write_radii``.

Compilers write them for more than 20,000 labels; few labels make the same form, and small files.
A file that exists is never touched: later versions must verify and run exactly those bytes.
"""

from pathlib import Path

from labeldp_compile.mechanisms import rr_on_bins
from tests.old_files.write import labels_of, outputs_of, write_missing

FOLDER = Path(__file__).parent / "radii_v1"
_SPEC = """\
version: 1
name: {loss}
label: {{column: y, domain: {domain}, out_of_domain: clamp}}
loss: {loss}
privacy: {{epsilon: 5}}
prior: {{kind: uniform}}
mechanism: {{kind: rr_on_bins}}
"""
SPECS = {
    "squared": _SPEC.format(loss="squared", domain="{kind: integer, min: -40, max: 400}"),
    "absolute": _SPEC.format(
        loss="absolute", domain="{kind: real, min: -1.5, max: 2.25, points: 301}"
    ),
}


def main() -> None:
    """Compile every spec of which the folder holds no artifact yet."""
    rr_on_bins.MAX_CERTIFIED_LABELS = 0
    FOLDER.mkdir(exist_ok=True)

    def entry_of(path: Path, certificate: dict) -> dict:
        labels = labels_of(certificate["label"]["domain"])
        return {"labels": labels, **outputs_of(path, labels)}

    write_missing(FOLDER, SPECS, entry_of)


if __name__ == "__main__":
    main()
