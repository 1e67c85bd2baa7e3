"""Is an exported model of images as accurate as the trained one? On all test images.

    LABELDP_DATA=folder python benchmarks/images_export.py --rows 600

Trains one release on the default representation of the first rows of MNIST, exports it, predicts
all test images with ``labeldp predict`` and with the ONNX file, and compares the predictions.
``--folder`` may hold a run with the same representation, which is then not learned again.
"""

import argparse
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import pyarrow.parquet as pq
from labeldp_trainer import parse_config, train
from labeldp_trainer.data.arrays import read_idx
from labeldp_trainer.export.onnx.model import onnx_model
from labeldp_trainer.outcomes.predict import open_trained, predict_file
from training_studies.features import PART

CONFIG = """
version: 1
name: export
data: {{kind: idx, train: {train}, test: {test}, classes: 10, rows: {rows}}}
loss: cross_entropy
method: {{kind: one_release, epsilon: 1, delta: 1e-5}}
"""
AT_ONCE = 500


def run(data, rows, folder):
    """Train, export, predict in both ways, print."""
    train_part, test_part = (PART.format(data, part) for part in ("train", "t10k"))
    config = CONFIG.format(train=train_part, test=test_part, rows=rows)
    shutil.rmtree(folder / "exported", ignore_errors=True)
    train(parse_config(config, "config", folder), folder / "exported")
    trained = open_trained(folder / "exported")
    model = onnx_model(trained)
    images = data / "t10k-images-idx3-ubyte.gz"
    labels = read_idx(data / "t10k-labels-idx1-ubyte.gz")
    predict_file(trained, images, folder / "predicted.parquet")
    own = pq.read_table(folder / "predicted.parquet")["prediction"].to_numpy()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    name, pixels = session.get_inputs()[0].name, read_idx(images)[..., None]
    exported = np.concatenate(
        [
            session.run(["prediction"], {name: pixels[start : start + AT_ONCE]})[0]
            for start in range(0, len(pixels), AT_ONCE)
        ]
    )
    print(f"{rows:,} training rows; file of {len(model):,} bytes; {len(pixels):,} test images")
    for what, found in (("predict", own), ("exported", exported)):
        print(f"  {what}: accuracy {(found == labels).mean():.4%}")
    print(f"  predictions that differ: {(own != exported).sum():,}")


def main():
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("LABELDP_DATA"))
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("say where the data are: --data or LABELDP_DATA")
    data = Path(arguments.data).absolute() / "mnist"
    with tempfile.TemporaryDirectory() as temporary:
        run(data, arguments.rows, (arguments.folder or Path(temporary)).absolute())


if __name__ == "__main__":
    main()
