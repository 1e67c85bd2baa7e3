"""What ``labeldp train`` prints at the end: a summary of at most 15 lines, the verdict last."""

from labeldp_verify.console.colour import Marked
from labeldp_verify.rounded import at_most

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.data import IdxFiles
from labeldp_trainer.evaluation import CONSTANTS
from labeldp_trainer.methods.statement import Statement, spent
from labeldp_trainer.outcomes.runs_table import shown
from labeldp_trainer.run.metrics import BESIDE, REPORTED
from labeldp_trainer.training import Result

_MOST_NOTES = 5
_COLUMNS = 15


def summary(loaded: LoadedConfig, result: Result) -> list[str]:
    """What was trained, its privacy, its test metric, and what a person must know."""
    statement = result.statement
    facts = {
        "privacy": _privacy(statement),
        "beyond ε": _excess(statement),
        "public": _public(statement),
        f"test {REPORTED[loaded.config.loss]}": _metric(loaded, result),
        "keep secret": "; ".join(statement.secret),
        "not covered": "; ".join((*statement.not_covered, *statement.limits)),
        "not proved": " ".join(statement.declared),
        "next run": statement.again,
        "folder": f"{result.folder} (privacy.txt holds the whole statement; --verbose prints it)",
    }
    lines = [f"  {name:{_COLUMNS}}{text}" for name, text in facts.items() if text]
    return [_trained(loaded, result), *lines]


def warnings(result: Result) -> list[Marked]:
    """The notes of a run; the first ones if there are many."""
    notes = list(result.notes)
    if len(notes) > _MOST_NOTES:
        more = len(notes) - _MOST_NOTES + 1
        notes = [*notes[: _MOST_NOTES - 1], f"{more:,} more notes are in result.json"]
    return [Marked(f"note: {note}", "warning") for note in notes]


def verdict(statement: Statement) -> Marked:
    """One short sentence."""
    if statement.epsilon is None:
        return Marked("trained without privacy: keep the model and its metrics secret", "warning")
    doubts = statement.details.get("doubts") or []
    ending = f" ({'; '.join(doubts)})" if doubts else ""
    verdict = f"trained with label privacy: {_of(statement)}{ending}"
    return Marked(verdict, "warning" if doubts else "ok")


def all_metrics(result: Result) -> str:
    """Every number of the result in one line."""
    return ", ".join(
        f"{name.replace('_', ' ')} {value:.6g}"
        for name, value in result.metrics.items()
        if isinstance(value, int | float)
    )


def _trained(loaded: LoadedConfig, result: Result) -> str:
    config, train = loaded.config, loaded.config.data.train
    kind, epochs = loaded.final.config.model_kind or "linear", result.metrics.get("epochs")
    parts = [
        f"model {kind}",
        f"loss {config.loss}",
        f"method {config.method.kind}",
        *([f"{epochs:,} epoch{'s' * (epochs != 1)}"] if epochs else []),
        f"{result.rows:,} rows of {train.images if isinstance(train, IdxFiles) else train}",
    ]
    return f"{config.name}: {', '.join(parts)}"


def _of(statement: Statement) -> str:
    assert statement.epsilon is not None
    return spent(statement.epsilon, statement.delta)


def _privacy(statement: Statement) -> str:
    if statement.epsilon is None:
        return f"none: {statement.mechanism}"
    most = statement.details.get("max_examples_per_user")
    if most is None:
        whose = "for each label; a person with several labels spends ε for each of them"
    else:
        whose = f"for all labels of a user together; at most {most:,} rows of each user are used"
    return f"{_of(statement)} {whose}"


def _excess(statement: Statement) -> str:
    """How likely outcomes are that say more than ε allows."""
    excess = statement.details.get("loss_above_epsilon")
    if excess is None:
        return ""
    return (
        f"outcomes that say more have a probability of at most {at_most(excess['at_most'], 3)} "
        f"(proved), which is not δ"
    )


def _public(statement: Statement) -> str:
    if statement.epsilon is None:
        return ""
    owners = statement.details.get("unit") == "user"
    return f"the features,{' who owns which row,' * owners} and the number of rows"


def _metric(loaded: LoadedConfig, result: Result) -> str:
    loss = loaded.config.loss
    if result.test is None:
        return "unknown: the config names no test data"
    model, constant, first = result.test.model, result.test.constant, REPORTED[loss]
    beside = "".join(
        f"; {words} {shown(model[name])}, {shown(constant.get(name))} by a constant"
        for name, words in BESIDE.get(first, {}).items()
        if name in model
    )
    return (
        f"{shown(model.get(first))}; always predicting {CONSTANTS[loss]} gives "
        f"{shown(constant.get(first))}{beside} (estimates from {result.test.rows:,} test rows)"
    )
