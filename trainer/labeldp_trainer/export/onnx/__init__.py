"""``labeldp export --to onnx``: a trained model as one ONNX file.

Encoder, representation and model are one graph, one function a layer.
"""

from pathlib import Path

import click

from labeldp_compile.toolkit import PATH, command, overwrite_option, quiet_option, tell
from labeldp_trainer.cli import require_outside_run


@command("onnx", "labeldp export --to onnx runs/first -o model.onnx")
@click.argument("run", type=PATH)
@click.option("-o", "--output", type=PATH, required=True, help="ONNX file to write.")
@click.option(
    "--data",
    type=PATH,
    help="Rows on which to compare the ONNX model with the trained one (default: the run's test "
    "or training file).",
)
@overwrite_option
@quiet_option
def target(run: Path, output: Path, data: Path | None, overwrite: bool, quiet: bool) -> None:
    """Write the model of the finished run in RUN as one ONNX file.

    The model takes raw features, with one tensor for each column of a table. Its metadata holds
    the privacy statement. The file is written only if it agrees with the trained model on real
    rows.
    """
    from labeldp_compile.toolkit import replaced_when_whole, require_output  # noqa: PLC0415

    require_output(output, data, overwrite=overwrite)
    require_outside_run(output, run)
    # JAX takes seconds to import: check the name first.
    from labeldp_trainer.export.onnx.model import check, onnx_model  # noqa: PLC0415
    from labeldp_trainer.outcomes.predict import open_trained  # noqa: PLC0415
    from labeldp_trainer.outcomes.runs import require_whole  # noqa: PLC0415

    trained = open_trained(run)
    require_whole(run)  # the model carries its promise
    model = onnx_model(trained)
    found = check(trained, model, data)
    with replaced_when_whole(output) as part:
        part.write(model)
    if not quiet:
        tell(
            f"{output}: {len(model):,} bytes; differs from the trained model by at most "
            f"{found.largest:.2g} on {found.rows:,} rows "
            f"({found.relative:.2g} of the largest output)"
        )
