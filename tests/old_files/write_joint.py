"""Write artifacts of several columns: ``python -m tests.old_files.write_joint``.

Tables are of format 1.3, and windows, since format 1.4, of that.

A file that exists is never touched: later versions must verify and run exactly those bytes.
"""

from pathlib import Path

from labeldp_runtime import Key, Randomizer

from tests.helpers import joint_spec
from tests.old_files.write import CONTEXT, COUNT, SECRET, fixed_words, labels_of, write_missing

HERE = Path(__file__).parent
FOLDERS = {
    "joint_v1": ["response", "top", "prior", "subsets", "large"],
    "joint_v2": ["response", "top", "prior", "large"],  # windows, in format 1.4
}
_FALLING = "{kind: public, weights: [" + ", ".join(map(str, range(24, 0, -1))) + "]}"
_SPECS = {
    "response": joint_spec(epsilon=1.5, real=True),
    "top": joint_spec("{kind: rr_top_k, k: 9}", 1, prior=_FALLING),
    "prior": joint_spec("{kind: rr_with_prior}", 2, loss="zero_one", prior=_FALLING),
    "subsets": joint_spec("{kind: subset_selection}", 1, loss="zero_one"),
    "large": joint_spec("{kind: subset_selection}", 5, loss="zero_one"),
}


def columns_of(certificate: dict) -> dict[str, list]:
    """Labels inside and outside of each column, which do not keep step; None is a missing one."""
    domains, columns = certificate["label"]["domain"]["columns"], certificate["joint"]["columns"]
    found = {}
    for i, (column, domain) in enumerate(zip(columns, domains, strict=True)):
        pool = labels_of(domain)
        found[column["name"]] = [pool[(j * (2 * i + 1) + j // 7) % COUNT] for j in range(COUNT)]
    return found


def joint_outputs_of(path: Path, labels: dict[str, list]) -> dict:
    """The private columns (or numbers of sets) for the fixed words, and for a fixed key."""
    plain = Randomizer.load(path)
    keyed = Randomizer.load(path, key=Key(SECRET), context=CONTEXT)
    words = plain.apply_words(labels, fixed_words(path.name, COUNT, 1))
    return {"words": _rows(words), "keyed": _rows(keyed(labels, ids=list(range(COUNT))))}


def _rows(drawn: object) -> list:
    if not isinstance(drawn, dict):
        return drawn.tolist()
    return [list(row) for row in zip(*(column.tolist() for column in drawn.values()), strict=True)]


def main() -> None:
    """Compile every spec of which its folder holds no artifact yet."""

    def entry_of(path: Path, certificate: dict) -> dict:
        labels = columns_of(certificate)
        return {"labels": labels, **joint_outputs_of(path, labels)}

    for folder, names in FOLDERS.items():
        (HERE / folder).mkdir(exist_ok=True)
        texts = {name: _SPECS[name].replace("name: joint", f"name: {name}") for name in names}
        write_missing(HERE / folder, texts, entry_of)


if __name__ == "__main__":
    main()
