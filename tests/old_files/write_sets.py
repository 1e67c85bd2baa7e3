"""Write artifacts with sets of labels: ``python -m tests.old_files.write_sets``.

Tables are of format 1.2, and windows, since format 1.4, of that.

A file that exists is never touched: later versions must verify and run exactly those bytes.
"""

from pathlib import Path

from labeldp_runtime import Randomizer

from tests.helpers import sets_spec
from tests.old_files.write import labels_of, outputs_of, write_missing

HERE = Path(__file__).parent
FOLDERS = {
    "sets_v1": ["subsets", "design", "integers", "large"],
    "sets_v2": ["large"],  # a window, in format 1.4
}
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
    """Compile every spec of which its folder holds no artifact yet."""

    def entry_of(path: Path, certificate: dict) -> dict:
        labels = labels_of(certificate["label"]["domain"])
        return {"labels": labels, "members": members_of(path), **outputs_of(path, labels)}

    for folder, names in FOLDERS.items():
        (HERE / folder).mkdir(exist_ok=True)
        texts = {name: sets_spec(*_SPECS[name], name) for name in names}
        write_missing(HERE / folder, texts, entry_of)


if __name__ == "__main__":
    main()
