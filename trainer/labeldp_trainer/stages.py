"""From the first stage of a training to the parameters of its last; most have only one.

A training in stages has a folder ``stages/1``, ``stages/2``, … inside its run folder, each with its
metrics and checkpoints. What a stage wants to keep (private labels) lies there, whole and synced,
before its first step, and the first stage's in the run folder itself: a run that is killed between
drawing labels and storing them draws others, but nobody has seen the first ones; one that is killed
later finds them. Finished stages are gone through again from their last checkpoints, in no time.
"""

from __future__ import annotations

from dataclasses import replace

import jax

from labeldp_trainer.epochs import Run
from labeldp_trainer.models import Model, Params
from labeldp_trainer.run.metrics import Line, draw_curve
from labeldp_trainer.run.program import Stages


def run_stages(
    run: Run, model: Model, params: Params, seed_key: jax.Array
) -> tuple[Params, int, list[Line]]:
    """All stages that are left: parameters, their epoch, and the metrics of the last stage.

    Every stage starts from fresh parameters; ``params`` are those of the first. Stage t has the
    keys 2t − 2 and 2t − 1 of the seed. Raises InputError.
    """
    later = run.method.later
    if later is None:
        return run.epochs(params, jax.random.fold_in(seed_key, 1))
    stages, number = Stages(run.folder), 1
    run = replace(run, folder=stages.open(number) or stages.create(number, {}))
    while True:
        keys = (
            jax.random.fold_in(seed_key, 2 * number - 2),
            jax.random.fold_in(seed_key, 2 * number - 1),
        )
        if number > 1:
            params = jax.jit(model.init)(keys[0])
        params, epoch, lines = run.epochs(params, keys[1])
        if later is None:
            return params, epoch, lines
        draw_curve(run.folder.path / "learning_curve.png", lines)
        number += 1
        folder = stages.open(number)
        method = later(params, None if folder is None else folder.stored())
        run = replace(run, method=method, folder=folder or stages.create(number, method.keep))
        later = method.later
