"""Check that a certificate agrees with a spec, which is read as plain text without compiling."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import labeldp_verify
from labeldp_verify import DEFAULT_BUDGET, Budget, Report, SpecCheck, read_artifact
from labeldp_verify.claims import Certificate, GroupsClaims, Prior
from labeldp_verify.errors import read_at_most, readable, short
from labeldp_verify.forms import CategoricalDomain, Integers, JointDomain, WindowRandomizer
from labeldp_verify.limits import Limits
from labeldp_verify.strict import parse_json, read_decimal

from labeldp_compile.errors import DataError, InputError
from labeldp_compile.project import PROJECT_FILE
from labeldp_compile.rounding.windows import MAX_OUTPUTS, even_outputs
from labeldp_compile.tabular.formats import is_among
from labeldp_compile.yaml_source import MAX_BYTES, YamlError, read_yaml

if TYPE_CHECKING:
    from labeldp_verify.signature import Signed


_SHOWN = 100


def check_file(
    path: Path,
    spec: Path | None = None,
    signed: Signed | None = None,
    budget: Budget = DEFAULT_BUDGET,
    limits: Limits | None = None,
) -> Report:
    """The report on an artifact and, with a spec, on whether it was made from that spec.

    Raises InputError if the file or the spec cannot be read, or its subclass TooLargeError if the
    check would exceed the budget.
    """
    agreement = None if spec is None else spec_check(read_artifact(spec), spec.parent)
    return labeldp_verify.check_file(path, agreement, signed, budget, limits)


class StaleError(InputError):
    """An artifact is not current with its spec."""

    exit_code = 1


def require_current(spec: Path, directory: Path) -> Path:
    """The artifact of a spec in a directory; raises StaleError unless compile would be needless.

    It must verify, and name this spec and agree with it; its certificate beside it must be its own.
    No data are read and nothing is spent, so this says nothing about data that changed.
    """
    from labeldp_compile.spec import load_spec  # noqa: PLC0415  # pydantic

    name = load_spec(spec)[0].name
    path, beside = directory / f"{name}.onnx", directory / f"{name}.certificate.json"
    if not path.exists():
        raise StaleError(f"{path}: does not exist: compile {spec}")
    report = check_file(path, spec)
    failed = next((check for check in report.checks if not check.ok), None)
    if failed is not None or report.certificate is None:
        reason = "it was not checked" if failed is None else f"{failed.name}: {failed.detail}"
        raise StaleError(f"{path}: is not current with {spec}: {reason}")
    try:
        stated = parse_json(read_artifact(beside).decode())
    except (InputError, ValueError):
        stated = None
    if stated != report.certificate.to_json():
        raise StaleError(f"{beside}: is not the certificate of {path.name}: compile {spec}")
    return path


def spec_check(spec: bytes, directory: Path | None = None) -> SpecCheck:
    """The check of a certificate against this spec, for ``labeldp_verify``."""
    return lambda certificate, integers: spec_disagreements(spec, certificate, integers, directory)


def spec_disagreements(
    spec: bytes,
    certificate: Certificate,
    integers: Integers | None = None,
    directory: Path | None = None,
) -> list[str]:
    """Where the certificate does not fit the spec, in plain words; empty if everything fits.

    ``integers`` are those of the file; without them, outputs are not compared with the spec's.
    ``directory`` is where the spec's paths start; without it, a loss with a file is not the same.
    Raises InputError if the spec is not YAML, or is too large.
    """
    stated = stated_in(spec)
    found = []
    if hashlib.sha256(spec).hexdigest() != certificate.digests.spec:
        found.append("compiled from another spec, or another version of it (the digest differs)")
    prior, exact = certificate.prior, certificate.exact
    claimed = {
        "name": certificate.name,
        "loss": certificate.utility.loss,
        "mechanism.kind": "auto" if certificate.auto else certificate.mechanism,
        "prior.kind": "private" if _is_unpaid(stated, certificate) else prior.kind,
        **_unit(certificate),
    }
    labels = 1 if certificate.person is None else certificate.person.labels_per_person
    if isinstance(_get(stated, "privacy.split"), dict):
        claimed["privacy.split.prior"] = labels * Fraction(exact.epsilon_prior)
        claimed["privacy.split.label"] = labels * Fraction(exact.epsilon_label)
    privacy = {"unit": "label", **_mapping(_get(stated, "privacy"))}
    stated = {**_with_loss(stated, certificate, directory), "privacy": privacy}
    found += _differing(stated, claimed)
    goal = _get(stated, "goal") or "training"
    found += _differing({"goal": goal}, {"goal": certificate.goal or goal})
    if prior.kind != "private" and exact.epsilon_prior != "0":
        found.append(f"the prior is {prior.kind}, but ε was spent on it")
    found += _label(_get(stated, "label"), certificate) + _weights(stated, prior)
    if integers is not None:
        found += _outputs(_get(stated, "mechanism.outputs"), certificate, integers)
    groups = _get(stated, "groups")
    return found + _groups(groups, certificate.groups) + _assign(groups, certificate.label_columns)


def _with_loss(
    stated: dict[str, Any], certificate: Certificate, directory: Path | None = None
) -> dict[str, Any]:
    """The same, with the name of a loss that is a mapping, or what is wrong with its file."""
    if not isinstance(loss := stated.get("loss"), dict):
        return stated
    from labeldp_compile.spec.loss import LossFile, loss_of_mapping  # noqa: PLC0415  # pydantic

    try:
        name, costs = loss_of_mapping(loss, read_decimal), certificate.parts.get("costs")
        if isinstance(name, LossFile) and costs is not None and directory is not None:
            name = name.read(directory, costs.labels)
    except DataError as error:
        name = str(error)
    except ValueError:
        return stated
    return {**stated, "loss": name}


def _unit(certificate: Certificate) -> dict[str, Any]:
    """The claimed unit of ε: a label or a person, and how many labels one has."""
    person, composition = certificate.person, certificate.composition
    if person is not None:
        return {
            "privacy.unit": "person",
            "privacy.epsilon": Fraction(person.epsilon_total),
            "privacy.person_column": person.column,
            "privacy.labels_per_person": person.labels_per_person,
        }
    return {
        "privacy.unit": "label",
        "privacy.epsilon": Fraction(certificate.exact.epsilon_total),
        "privacy.labels_per_user": composition and composition.labels_per_user,
    }


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _differing(in_spec: Any, claimed: dict[str, Any], within: str = "") -> list[str]:
    """Where the spec and the claims differ, by key; ``within`` is the path of the keys."""
    return [
        f"{within}{key}: the spec says {_shown(_get(in_spec, key))}, "
        f"the certificate {_shown(value)}"
        for key, value in claimed.items()
        if not _same(_get(in_spec, key), value)
    ]


def _is_unpaid(stated: Any, certificate: Certificate) -> bool:
    """Whether ``split: auto`` chose a uniform prior instead of a private one."""
    is_auto = _get(stated, "privacy.split") in (None, "auto")
    is_private = _get(stated, "prior.kind") == "private"
    free = certificate.prior.kind == "uniform" and certificate.exact.epsilon_prior == "0"
    return is_auto and is_private and free


def _label(in_spec: Any, certificate: Certificate) -> list[str]:
    """The label, or each column of a joint one, must be the same."""
    domain = certificate.label.domain
    if certificate.joint is None:
        return _column(in_spec, "label", {"column": certificate.label.column}, domain)
    listed, claimed = _get(in_spec, "columns"), certificate.joint.columns
    if not isinstance(listed, list) or len(listed) != len(claimed):
        return ["label.columns: the spec and the certificate have different numbers of columns"]
    found = []
    for i, (own, column, part) in enumerate(zip(listed, claimed, domain["columns"], strict=True)):
        wanted: dict[str, Any] = {"column": column.name, "loss": column.loss}
        if column.weight is not None:
            wanted["weight"] = Fraction(column.weight)
        stated = _with_loss({"weight": "1", **own}, certificate) if isinstance(own, dict) else own
        found += _column(stated, f"label.columns.{i}", wanted, part)
    return found


def _column(in_spec: Any, where: str, wanted: dict[str, Any], domain: dict[str, Any]) -> list[str]:
    """One column of the label: its domain, and what else is ``wanted``."""
    wanted = {**wanted, **_domain(in_spec, domain)}
    if _get(in_spec, "domain.rounding") is not None:
        wanted["domain.rounding"] = domain.get("rounding")
    others, key = domain["out_of_domain"], "out_of_domain"
    nulls = None
    if isinstance(others, dict) and "nulls" in others:
        others, nulls = others["others"], others["nulls"]
    if isinstance(nulls, dict):
        wanted["nulls.default"] = nulls["default"]
    elif nulls is not None or _get(in_spec, "nulls") is not None:
        wanted["nulls"] = nulls
    if isinstance(in_spec, dict) and in_spec.get("nulls") == "category":  # whose name is fixed
        wanted.pop("nulls.default", None)
        in_spec = {key: value for key, value in in_spec.items() if key != "nulls"}
    if isinstance(others, dict):
        others, key = others["default"], "out_of_domain.default"
    elif isinstance(in_spec, dict):
        in_spec = {key: others, **in_spec}
    return _differing(in_spec, {**wanted, key: others}, f"{where}.")


def _domain(in_spec: Any, domain: dict[str, Any]) -> dict[str, Any]:
    """The domain that the spec must state."""
    values = domain.get("values")
    if domain["kind"] != "grid":
        listed = None if values is None else [str(value) for value in values]
        if listed is not None and _get(in_spec, "nulls") == "category":
            listed = listed[:-1]  # the added one
        ends = {f"domain.{key}": domain.get(key) for key in ("min", "max", "points")}
        return {"domain.kind": domain["kind"], "domain.values": listed, **ends}
    wanted: dict[str, Any] = {"domain.kind": "real"}
    if _get(in_spec, "domain.grid.kind") == "points":
        stated = _get(in_spec, "domain.grid.values")
        exact = [_number(text) for text in stated] if isinstance(stated, list) else []
        alike = [None if one is None else float(one) for one in exact] == values
        return wanted if alike else {**wanted, "domain.grid.values": values}
    assert values is not None  # of every grid that verifies
    return {**wanted, "domain.min": values[0], "domain.max": values[-1]}


def _groups(in_spec: Any, in_file: GroupsClaims | None) -> list[str]:
    """The columns must be the same, with the same values or bands, if no file assigns groups."""
    if in_spec is None or in_file is None:
        return [] if in_spec is in_file else ["groups: only the spec or only the file has them"]
    columns = _get(in_spec, "columns") or [in_spec]
    if not isinstance(columns, list) or len(columns) != len(in_file.columns):
        return ["groups: the spec and the certificate have different numbers of columns"]
    found = []
    for one, claimed in zip(columns, in_file.columns, strict=True):
        name, values, bands = _get(one, "column"), _get(one, "values"), _get(one, "bands")
        if name != claimed.name:
            found.append(f"groups: the spec says {_shown(name)}, the certificate {claimed.name}")
        stated = claimed.values and [str(value) for value in claimed.values]
        alike = _same(values, stated) and _same_numbers(bands, claimed.bands)
        if _get(in_spec, "assign") is None and not alike:
            found.append(f"groups: the values or bands of {_shown(name)} differ")
    return found


def _assign(in_spec: Any, labels: list[str]) -> list[str]:
    """The file that assigns groups must name no column of the label."""
    named = [(key, _get(in_spec, f"assign.{key}")) for key in ("key", "group")]
    return [
        f"groups.assign.{key}: {_shown(name)} is the label, which cannot be its own group"
        for key, name in named
        if isinstance(name, str) and is_among(name, labels)
    ]


def _weights(stated: Any, prior: Prior) -> list[str]:
    """Public weights must be in the same proportion."""
    in_spec, total = _get(stated, "prior.weights"), sum(prior.weights)
    if in_spec is None:
        return []
    exact = [_number(text) for text in in_spec] if isinstance(in_spec, list) else []
    every = sum(number or 0 for number in exact)
    in_file = [Fraction(every * weight, total or 1) for weight in prior.weights]
    return [] if exact == in_file else ["prior.weights: the spec and the certificate differ"]


def _outputs(in_spec: Any, certificate: Certificate, integers: Integers) -> list[str]:
    """The file must return nothing but the outputs that the spec gives, if it gives any."""
    listed, count = _get(in_spec, "values"), _number(_get(in_spec, "grid") or "")
    given: list[float] = []
    if isinstance(listed, list):
        given = [float(value) for value in map(_number, listed) if value is not None]
    elif count is not None and not isinstance(integers.label, CategoricalDomain | JointDomain):
        epsilon, labels = Fraction(certificate.exact.epsilon_label), integers.label.labels()
        given = even_outputs(labels, epsilon, min(max(int(count), 2), MAX_OUTPUTS))
    elif not isinstance(in_spec, dict):
        return []
    windows = [table for table in integers.tables if isinstance(table, WindowRandomizer)]
    others = {value for window in windows for value in window.values} - {*given}
    if len(windows) == len(integers.tables) and not others:
        return []
    return [f"mechanism.outputs: {len(others):,} outputs of the file are not in the spec"]


def _same_numbers(texts: Any, numbers: list[Any] | None) -> bool:
    if not isinstance(texts, list) or numbers is None:
        return texts is None and numbers is None
    return len(texts) == len(numbers) and all(map(_same, texts, numbers))


def _same(text: Any, value: Any) -> bool:
    """Whether the spec says this value. Numbers are read as the compiler reads them."""
    if text is None or not isinstance(value, int | float | Fraction):
        return bool(text == value)
    number = _number(text)
    if isinstance(value, float) and number is not None:
        return float(number) == value
    return number == value


def _number(text: Any) -> Fraction | None:
    try:
        return Fraction(read_decimal(text))
    except ValueError:
        return None


def stated_in(spec: bytes) -> dict[str, Any]:
    """The keys of a spec, every scalar as its text, so that no number is rounded.

    Raises InputError if the spec is not YAML, or is too large.
    """
    if len(spec) > MAX_BYTES:
        raise InputError(f"a spec has at most {MAX_BYTES:,} bytes")
    try:
        stated = read_yaml(spec.decode(), lambda event: event.value).data
    except UnicodeDecodeError as error:
        raise InputError("the spec is not UTF-8 text") from error
    except YamlError as error:
        raise InputError(f"the spec, line {error.line}: {error}") from error
    if not isinstance(stated, dict):
        raise InputError("the spec is not a mapping")
    return stated


def specs_in(folder: Path) -> dict[str, tuple[Path, bytes]]:
    """The path and the bytes of each spec in a folder, by its name; other YAML files are left out.
    Raises InputError for a file that cannot be read, for two specs of one name, and without a spec.
    """
    specs: dict[str, tuple[Path, bytes]] = {}
    with readable(folder):
        names = {p.name for p in folder.iterdir() if p.suffix in (".yaml", ".yml")}
    for path in map(folder.joinpath, sorted(names - {PROJECT_FILE})):
        if not path.is_file():
            raise InputError(f"{path}: is no ordinary file")
        data = read_at_most(path, MAX_BYTES + 1)
        try:
            stated = stated_in(data)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        if not {"label", "privacy"} & stated.keys():
            continue
        name = str(stated.get("name"))
        if name.casefold() in map(str.casefold, specs):  # some disks hold one file for both
            raise InputError(f"{path}: another spec in {folder} has the name {name!r}, too")
        specs[name] = path, data
    if not specs:
        raise InputError(f"{folder}: has no spec")
    return specs


def _shown(value: Any) -> str:
    """The text as written, if it is short."""
    if value is None:
        return "nothing"
    text = str(value) if isinstance(value, Fraction) else value
    return text if isinstance(text, str) and len(text) <= _SHOWN else short(text)


def _get(mapping: Any, keys: str) -> Any:
    """The value at a path of keys, separated by dots."""
    for key in keys.split("."):
        mapping = mapping.get(key) if isinstance(mapping, dict) else None
    return mapping
