"""Studies of the trainer, as markdown tables; any JAX device.

    LABELDP_DATA=folder python benchmarks/training.py tables weeks --rows 50000
    LABELDP_DATA=folder python benchmarks/training.py images fashion-mnist --epsilons 0.1,0.5
    LABELDP_DATA=folder python benchmarks/training.py groups weeks
    LABELDP_DATA=folder python benchmarks/training.py sets fashion-mnist
    LABELDP_DATA=folder python benchmarks/training.py rivals
    python benchmarks/training.py steps

``features``: one release on public features, and private labels, over ε. ``tables``: test loss of
regressions on privatized labels over ε. ``images``: test accuracy of every method of
classification. ``groups``: test loss with a prior for every public group. ``sets``: test accuracy
on private sets of classes. ``rivals``: methods of 2024 to 2026. ``steps``: seconds a step. Each has
``--help``.
"""

import os
import sys

from training_studies import features, groups, images, rivals, sets, steps, tables

STUDIES = {
    "features": features.main,
    "tables": tables.main,
    "images": images.main,
    "groups": groups.main,
    "sets": sets.main,
    "rivals": rivals.main,
    "steps": steps.main,
}


def main():
    """Hand over to the study that is named."""
    if len(sys.argv) == 1:
        # `make bench` runs every script without arguments.
        steps.main([])
        if "LABELDP_DATA" in os.environ:
            features.main([])
            tables.main([])
            images.main([])
            groups.main([])
            sets.main([])
            rivals.main([])
        else:
            print("benchmarks/training.py: LABELDP_DATA names no folder: steps only")
    elif sys.argv[1] in STUDIES:
        STUDIES[sys.argv[1]](sys.argv[2:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
