"""Write artifacts of format 1.2, with sets of labels: ``python -m tests.old_files.write_sets``.

A file that exists is never touched: later versions must verify and run exactly those bytes.
"""

import hashlib
import json
from pathlib import Path

from labeldp_runtime import Randomizer

from labeldp_compile.pipeline import compile_spec
from tests.old_files.write import labels_of, outputs_of

FOLDER = Path(__file__).parent / "sets_v1"
_TEMPLATE = """\
version: 1
name: {name}
label:
  column: y
  domain: {domain}
  out_of_domain: {rule}
loss: zero_one
privacy: {{epsilon: {epsilon}}}
prior: {{kind: uniform}}
mechanism: {{kind: subset_selection}}
"""
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
    listed = FOLDER / "manifest.json"
    manifest = json.loads(listed.read_text("utf-8")) if listed.exists() else {}
    for name, (domain, rule, epsilon) in _SPECS.items():
        if f"{name}.onnx" in manifest:
            continue
        spec = FOLDER / f"{name}.yaml"
        text = _TEMPLATE.format(name=name, domain=domain, rule=rule, epsilon=epsilon)
        spec.write_text(text, encoding="utf-8")
        path = compile_spec(spec).write(FOLDER)
        path.with_suffix(".certificate.json").unlink()
        labels = labels_of(Randomizer.load(path).certificate["label"]["domain"])
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        entry = {"sha256": digest, "labels": labels, "members": members_of(path)}
        manifest[path.name] = {**entry, **outputs_of(path, labels)}
    entries = [f"{json.dumps(name)}: {json.dumps(e)}" for name, e in sorted(manifest.items())]
    listed.write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
