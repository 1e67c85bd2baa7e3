"""Write artifacts of format 1.2, with sets of labels: ``python -m tests.old_files.write_sets``.

A file that exists is never touched: later versions must verify and run exactly those bytes.
"""

from pathlib import Path

from labeldp_runtime import Randomizer

from tests.helpers import sets_spec
from tests.old_files.write import labels_of, outputs_of, write_missing

FOLDER = Path(__file__).parent / "sets_v1"
_TEXT = '{kind: categorical, values: [é, "e\\u0301", "", 日本, red, "red "]}'
_LARGE = f"{-(2**63)}, {2**63 - 1}, {2**53 + 1}"
_CODES = f"{{kind: categorical, values: [{_LARGE}, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12]}}"
_SPECS = {
    "subsets": (_TEXT, "{default: red}", 1),
    "design": (_CODES, "{default: 4}", 1),
    "integers": ("{kind: integer, min: -3, max: 17}", "clamp", 1.2),
    "large": (_TEXT, "{default: é}", 3),
}


def members_of(path: Path) -> list[list]:
    """The labels in each set, in the order of their numbers; none where they are the labels."""
    randomizer = Randomizer.load(path)
    blocks = randomizer.certificate["sets"]["blocks"]
    return [] if blocks is None else [randomizer.members(o) for o in range(len(blocks))]


def main() -> None:
    """Compile every spec of which the folder holds no artifact yet."""
    FOLDER.mkdir(exist_ok=True)
    texts = {name: sets_spec(*spec, name) for name, spec in _SPECS.items()}

    def entry_of(path: Path, certificate: dict) -> dict:
        labels = labels_of(certificate["label"]["domain"])
        return {"labels": labels, "members": members_of(path), **outputs_of(path, labels)}

    write_missing(FOLDER, texts, entry_of)


if __name__ == "__main__":
    main()
