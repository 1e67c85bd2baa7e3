"""Random specs and tables through plan, compile, verify, randomize and estimate.

    python benchmarks/random_specs.py [--specs 2000] [--seed 1]

Every exit code is 0, 1 or 2, without a traceback; a plan that compile then refuses, a file that
does not verify, and every number of plan that says "at most" and does not hold for the file are
faults. Prints how the cases ended, and each fault with the seed of its case; exit code 1 if there
is one.
"""

import argparse
import json
import math
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner
from labeldp_verify import check_file
from labeldp_verify.claims import person_epsilon

from labeldp_compile.cli import main as labeldp

NUMERIC = (
    *("auto", "randomized_response", "rr_with_prior", "rr_top_k", "rr_on_bins"),
    *("optimal_unbiased", "optimal_unbiased", "debiased_rr", "laplace", "staircase", "exponential"),
)
CATEGORICAL = (
    *("auto", "randomized_response", "subset_selection", "rr_with_prior", "rr_top_k"),
    "exponential",
)
Case = dict[str, Any]
ROOM = 1e-9  # of a float that two processes may sum in another order


def column_of(rng: random.Random, name: str, kinds: str, most: int) -> Case:
    """A label column of one of the kinds, with at most this number of labels."""
    kind, k = rng.choice(kinds.split()), min(rng.choice([2, 3, 5, 9, 16, 40]), most)
    column: Case = {"column": name}
    if kind == "categorical":
        values = rng.choice([[f"c{i}" for i in range(k)], [7 * i - 3 for i in range(k)]])
        column["domain"] = {"kind": kind, "values": values}
        column["out_of_domain"] = {"default": rng.choice(values)}
    elif kind == "integer":
        low = rng.choice([0, 0, 0, 1, -20, 1000])
        column["domain"] = {"kind": kind, "min": low, "max": low + k - 1}
    else:
        low, width = rng.choice([0, 0, -1.5, 100]), rng.choice([1, 5, 8.75, 1e4])
        column["domain"] = {"kind": kind, "min": low, "max": low + width}
        column["domain"]["rounding"] = rng.choice(["unbiased", "unbiased", "nearest"])
        if rng.random() < 0.2:
            inner = sorted({round(low + width * rng.random(), 3) for _ in range(k - 2)})
            points = sorted({low, *inner, low + width})
            column["domain"]["grid"] = {"kind": "points", "values": points}
        else:
            column["domain"]["points"] = k
    domain = column["domain"]
    if kind != "categorical" and rng.random() < 0.2:
        column["out_of_domain"] = {"default": domain["min"]}
    if rng.random() < 0.2:
        column["nulls"] = "public" if rng.random() < 0.5 else {"default": first_label(domain)}
    return column


def first_label(domain: Case) -> Any:
    """The lowest label, or the first category."""
    return domain["values"][0] if domain["kind"] == "categorical" else domain["min"]


def mechanism_of(rng: random.Random, spec: Case, domain: Case | None) -> Case:
    """A mechanism that mostly fits; options at random."""
    if domain is None:
        return {"kind": rng.choice(["auto", "randomized_response", "rr_with_prior", "exponential"])}
    kind = rng.choice(CATEGORICAL if domain["kind"] == "categorical" else NUMERIC)
    found: Case = {"kind": kind}
    if kind == "rr_top_k":
        found["k"] = rng.randint(1, 5)
    if kind in ("laplace", "staircase"):
        found["clip"] = rng.random() < 0.5
        if rng.random() < 0.3:
            found["lattice"] = rng.choice([0.1, 0.5])
    if kind == "optimal_unbiased":
        width, low = domain["max"] - domain["min"], domain["min"]
        option = rng.choice(["", "", "max", "penalty", "sample_size", "grid", "values"])
        if spec["loss"] != "squared":
            option = rng.choice(["grid", "values"])
        if option == "max":
            found["bias"] = {"max": round(width * rng.random() / 4, 3)}
        elif option == "penalty":
            found["bias"] = {"penalty": rng.choice([0, 0.5, 10])}
        elif option == "sample_size":
            found["bias"] = {"sample_size": rng.choice([1, 2, 100, 20_001])}
        elif option == "grid":
            found["outputs"] = {"grid": rng.choice([2, 9, 41])}
        elif option == "values":
            reach = width * rng.choice([1, 2, 20])
            ends = [round(low - reach, 3), round(low + width + reach, 3)]
            inner = (round(rng.uniform(*ends), 3) for _ in range(rng.choice([0, 5, 20])))
            found["outputs"] = {"values": sorted({*ends, *inner})}
    return found


def random_case(rng: random.Random) -> tuple[Case, list[list[Any]]]:
    """A spec, and the rows of its table: the header first."""
    spec: Case = {"version": 1, "name": "random", "goal": rng.choice(["training", "labels"])}
    joint = rng.random() < 0.12
    if joint:
        names = ["y", "z", "w"][: rng.choice([2, 2, 3])]
        columns = [column_of(rng, name, "integer categorical categorical", 4) for name in names]
        for column in columns:
            kinds = ["zero_one"]
            if column["domain"]["kind"] != "categorical":
                kinds = ["zero_one", "absolute", "squared"]
            column["loss"] = rng.choice(kinds)
            column.pop("nulls", None)
        spec["label"], spec["loss"], domain = {"columns": columns}, "sum", None
    else:
        columns = [column_of(rng, "y", "integer integer real categorical", 40)]
        spec["label"], domain = columns[0], columns[0]["domain"]
        losses = ["squared", "squared", "absolute", "zero_one"]
        if domain["kind"] == "categorical":
            losses = ["zero_one"]
        elif domain["kind"] == "real":
            losses.pop()
        spec["loss"] = rng.choice(losses)
        if domain["kind"] != "categorical" and domain["min"] >= 0 and rng.random() < 0.08:
            spec["loss"] = "poisson"
    epsilon = float(f"{math.exp(rng.uniform(math.log(0.05), math.log(14))):.3g}")
    spec["privacy"] = {"epsilon": epsilon}
    spec["mechanism"] = mechanism_of(rng, spec, domain)
    rows = table_of(rng, columns, rng.choice([30, 200, 1000, 3000]))
    add_prior(rng, spec, columns, rows)
    return spec, rows


def add_prior(rng: random.Random, spec: Case, columns: list[Case], rows: list[list[Any]]) -> None:
    """The prior, the split of ε, groups, and the labels of a person."""
    prior = rng.choice(["uniform", "public", "private", "private", "private"])
    spec["prior"] = {"kind": prior}
    sizes = [len(labels_of(column["domain"])) for column in columns]
    if prior == "public":
        if rng.random() < 0.3:
            spec["prior"]["data"] = "table.csv"
        else:
            shape = rng.choice([1, 20])
            weights = [rng.randrange(0, 100) ** shape for _ in range(math.prod(sizes))]
            spec["prior"]["weights"] = [one + (i == 0) for i, one in enumerate(weights)]
    if prior == "private":
        spec["prior"] |= {"data": "table.csv", "rows": counted(columns, rows)}
        share = rng.choice([0.02, 0.1, 0.4])
        given = {"prior": round(spec["privacy"]["epsilon"] * share, 6)}
        given["label"] = round(spec["privacy"]["epsilon"] - given["prior"], 6)
        spec["privacy"]["split"] = rng.choice(["auto", "paper", given, given])
        if rng.random() < 0.2 and len(columns) == 1:
            values = {"values": ["a", "b"]}
            bands = {"column": "age", "bands": [30, 60]}
            spec["groups"] = rng.choice(
                [{"column": "group", **values}, {"columns": [{"column": "group", **values}, bands]}]
            )
    if rng.random() < 0.15:
        spec["privacy"]["labels_per_user"] = rng.choice([1, 2, 10])
    elif rng.random() < 0.15 and prior != "public":
        spec["privacy"] |= {"unit": "person", "person_column": "who", "labels_per_person": 3}


def counted(columns: list[Case], rows: list[list[Any]]) -> int:
    """The rows that a prior counts: public nulls are left out."""
    public = columns[0].get("nulls") == "public"
    return sum(not public or row[1] != "" for row in rows[1:])


def labels_of(domain: Case) -> list[Any]:
    """The labels, or points of the grid."""
    if domain["kind"] == "categorical":
        return list(domain["values"])
    if "grid" in domain:
        return list(domain["grid"]["values"])
    if domain["kind"] == "integer":
        return list(range(domain["min"], domain["max"] + 1))
    step = (domain["max"] - domain["min"]) / (domain["points"] - 1)
    return [domain["min"] + step * i for i in range(domain["points"])]


def table_of(rng: random.Random, columns: list[Case], rows: int) -> list[list[Any]]:
    """Skewed labels, some far outside or missing, and public columns."""
    table: list[list[Any]] = [["id", *(c["column"] for c in columns), "group", "age", "who"]]
    shapes = [
        (labels_of(c["domain"]), rng.choice(["even", "zeros", "falls", "ends"])) for c in columns
    ]
    for i in range(rows):
        cells = []
        for labels, shape in shapes:
            k = len(labels)
            place = rng.randrange(k)
            if shape == "zeros" and rng.random() < 0.95:
                place = 0
            elif shape == "falls":
                place = min(int(rng.expovariate(1)), k - 1)
            elif shape == "ends":
                place = rng.choice([0, k - 1])
            cell: Any = labels[place]
            if rng.random() < 0.03:
                cell = rng.choice(["", "-7", "9999999"])
            cells.append(cell)
        group = rng.choice("aaabc") if i % 3 else "b"
        table.append([i, *cells, group, rng.randrange(0, 90), i // 3])
    return table


def run(words: list[Any], codes: tuple[int, ...] = (0, 1, 2)) -> tuple[int, str, str]:
    """Exit code, stdout and stderr; AssertionError for a traceback or another exit code."""
    result = CliRunner().invoke(labeldp, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(f"{words[0]}: {result.exception!r}") from result.exception
    if result.exit_code not in codes:
        said = (result.stderr or result.stdout).strip().splitlines()
        raise AssertionError(f"{words[0]}: exit code {result.exit_code}: {' '.join(said[-1:])}")
    return result.exit_code, result.stdout, result.stderr


def reason(said: str) -> str:
    """The first sentence of a message, without its numbers and paths."""
    line = " ".join(said.split()).removeprefix("labeldp: ")
    return re.sub(r"/tmp/\S+ |[\d.,]*\d", "N", line)[:90]


def try_case(seed: object, folder: Path) -> str:
    """How a case ended. Raises AssertionError for a fault."""
    spec, rows = random_case(random.Random(f"random specs {seed}"))
    path, table, artifact = (folder / name for name in ("s.yaml", "table.csv", "random.onnx"))
    path.write_text(yaml.safe_dump(spec, allow_unicode=True), encoding="utf-8")
    table.write_text("".join(",".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    code, planned, said = run(["plan", path, "--json"])
    if code:
        return f"plan refuses: {reason(said)}"
    plan = json.loads(planned)
    run(["plan", path, "--verbose"], (0,))
    code, _, said = run(["compile", path, "-o", folder, "--overwrite", "--quiet"])
    if code:
        return f"compile refuses: {reason(said)}"
    run(["verify", artifact, "--spec", path], (0,))
    faults = list(broken_bounds(plan, artifact))
    if faults:
        raise AssertionError("; ".join(faults))
    private = folder / "private.csv"
    private.unlink(missing_ok=True)
    run(["randomize", artifact, table, "-o", private], (0,))
    code, _, said = run(["estimate", artifact, private, "--json"])
    return "estimated" if code == 0 else "supports no estimate"


def broken_bounds(plan: Case, artifact: Path) -> Iterator[str]:
    """The numbers of a plan that say "at most" and do not hold for its file."""

    def above(what: str, found: float | Fraction | None, most: float | Fraction | None) -> bool:
        return most is not None and (found is None or found > most * (1 + Fraction(ROOM)))

    file = check_file(artifact).verified()
    stated, exact = file.certificate, plan["privacy"]["exact"]
    pairs: list[tuple[str, Any, Any]] = [
        ("bytes", artifact.stat().st_size, plan["estimate"]["most_bytes"]),
        (
            "ε of a label",
            Fraction(stated.exact.epsilon_label_bound),
            Fraction(exact["epsilon_label"]),
        ),
        ("ε of the prior", Fraction(stated.exact.epsilon_prior), Fraction(exact["epsilon_prior"])),
    ]
    person = person_epsilon(stated)
    if plan["person"] is not None and person is not None:
        most = Fraction(plan["person"]["exact"]["epsilon_total"])
        pairs.append(("ε of a person", person.bound + person.prior, most))
    use = plan["usefulness"]
    for number in range(file.groups.tables if use else 0):
        table = file.table(number)
        found = table.use_to_json()
        for here, there in zip(found["belief"], use["belief"], strict=True):
            pairs.append(("belief", here["after"], there["after"]))
        for here, there in zip(found["margins"], use["margins"], strict=False):
            pairs.append((f"margin over {here['rows']}", here["all_labels"], there["all_labels"]))
        if use["settled"]:
            for key in ("deviation", "distance", "kept"):
                for end in ("least", "most"):
                    ends = [(one[key] or {}).get(end) for one in (found, use)]
                    pairs.append((f"{end} {key}", *(ends if end == "most" else ends[::-1])))
            pairs.append(("outputs", file.certificate.outputs, plan["estimate"]["outputs"]["most"]))
        elif any(margin["all_labels"] is not None for margin in use["margins"]):
            yield "a margin for all labels that the prior can break"
    for what, value, most in pairs:
        if above(what, value, most):
            yield f"{what}: {float(value or 0):.9g} is above {float(most):.9g}"


def main() -> None:
    """Try all cases and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--specs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    ended: Counter[str] = Counter()
    start = time.perf_counter()
    for number in range(options.specs):
        with tempfile.TemporaryDirectory() as folder:
            try:
                ended[try_case(f"{options.seed}-{number}", Path(folder))] += 1
            except AssertionError as fault:
                ended["fault"] += 1
                print(f"case {options.seed}-{number}: {fault}", flush=True)
        if number % 100 == 99:
            print(f"{number + 1:,} specs, {time.perf_counter() - start:.0f} s", flush=True)
    for what, count in ended.most_common():
        print(f"{count:6,}  {what}")
    sys.exit(1 if ended["fault"] else 0)


if __name__ == "__main__":
    main()
