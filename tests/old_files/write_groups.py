"""Write artifacts of format 1.1, with groups: ``python -m tests.old_files.write_groups``.

A file that exists is never touched: later versions must verify and run exactly those bytes.
"""

from pathlib import Path

import numpy as np
from labeldp_runtime import Key, Randomizer

from tests.old_files.write import CONTEXT, COUNT, SECRET, fixed_words, write_missing

FOLDER = Path(__file__).parent / "groups_v1"
_TEMPLATE = """\
version: 1
name: {name}
goal: labels
label: {{column: y, domain: {domain}}}
loss: squared
privacy: {{epsilon: 2}}
prior: {{kind: public, data: rows.csv}}
mechanism: {mechanism}
groups: {groups}
"""
_INTEGER = "{kind: integer, min: 0, max: 9}"
_AGES, _WORK = "{column: age, bands: [18, 65.5]}", "{column: work, values: [no, private, é]}"
_SPECS = {
    "text": (_INTEGER, "{kind: rr_on_bins}", _WORK),
    "integers": (_INTEGER, "{kind: optimal_unbiased}", "{column: code, values: [7, -2, 400]}"),
    "numbered": (_INTEGER, "{kind: randomized_response}", "{column: number, values: [0, 1, 2]}"),
    "bands": (_INTEGER, "{kind: rr_with_prior}", _AGES),
    "columns": (_INTEGER, "{kind: rr_on_bins}", f"{{columns: [{_AGES}, {_WORK}]}}"),
    "assigned": (
        _INTEGER,
        "{kind: debiased_rr}",
        "{column: code, assign: {file: teams.csv, key: code, group: team}}",
    ),
    "real": (
        "{kind: real, min: 0, max: 9, points: 7}",
        "{kind: optimal_unbiased, bias: {sample_size: 50}}",
        f"{{columns: [{_AGES}, {{column: code, values: [7, -2]}}]}}",
    ),
}


def rows() -> dict[str, list]:
    """Columns of features, and labels, listed and not."""
    i = np.arange(COUNT)
    return {
        "age": [None if n % 11 == 10 else float(n % 90) for n in (i * 37).tolist()],
        "work": [["no", "private", "é", "e\u0301", None][n % 5] for n in i],
        "code": [[7, -2, 400, 8, None][n % 5] for n in (i * 3).tolist()],
        "number": [[0, 1, 2, 3, -1, None][n % 6] for n in i],
        "y": [int(n) for n in (i * 7 + i // 10) % 10],
    }


def outputs_of(path: Path) -> dict[str, list]:
    """The private labels for the fixed words, and for a fixed key and the ids 0, 1, 2, …"""
    plain, table = Randomizer.load(path), rows()
    words = fixed_words(path.name, COUNT, plain._words_per_label)
    keyed = Randomizer.load(path, key=Key(SECRET), context=CONTEXT)
    return {
        "words": plain.apply_words(table["y"], words, columns=table).tolist(),
        "keyed": keyed(table["y"], columns=table, ids=list(range(COUNT))).tolist(),
    }


def main() -> None:
    """Compile every spec of which the folder holds no artifact yet."""
    FOLDER.mkdir(exist_ok=True)
    table = rows()
    lines = [
        ",".join("" if v is None else str(v) for v in row)
        for row in zip(*table.values(), strict=True)
    ]
    (FOLDER / "rows.csv").write_text("\n".join([",".join(table), *lines, ""]), encoding="utf-8")
    (FOLDER / "teams.csv").write_text("code,team\n7,a\n-2,b\n400,a\n", encoding="utf-8")
    texts = {
        name: _TEMPLATE.format(name=name, domain=domain, mechanism=mechanism, groups=groups)
        for name, (domain, mechanism, groups) in _SPECS.items()
    }
    write_missing(FOLDER, texts, lambda path, certificate: outputs_of(path))


if __name__ == "__main__":
    main()
