"""How a study on the tables of others ends its options: it runs, or shows what was run."""

import os
import tempfile
import warnings
from pathlib import Path


def run_or_show(parser, results, run, show):
    """Parse the options; ``show`` them, or ``run`` them with a folder for tables and artifacts."""
    parser.add_argument("--data", type=Path, default=os.environ.get("LABELDP_DATA"))
    parser.add_argument("--results", type=Path, default=results)
    parser.add_argument("--folder", type=Path, help="where tables and artifacts are kept")
    parser.add_argument("--show", action="store_true", help="print tables of what was run")
    arguments = parser.parse_args()
    if arguments.show:
        show(arguments)
        return
    if arguments.data is None:
        parser.error("say where the data are: --data or LABELDP_DATA")
    arguments.data = arguments.data.absolute()  # other processes read from it
    warnings.simplefilter("ignore")  # of libraries about names of columns
    with tempfile.TemporaryDirectory() as temporary:
        run(arguments, (arguments.folder or Path(temporary)).absolute())
