"""Make randhie.parquet from the statsmodels package (needs statsmodels; not needed to use labeldp).

RAND Health Insurance Experiment, as in A. Cameron and P. Trivedi, Microeconometrics (2005). The
package states: "This is in the public domain." Row order and columns are the package's; integers
are stored as int16.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from statsmodels.datasets import randhie

frame = randhie.load_pandas().data
columns = {
    name: frame[name].astype("int16") if (frame[name] % 1 == 0).all() else frame[name]
    for name in frame.columns
}
pq.write_table(pa.table(columns), Path(__file__).with_name("randhie.parquet"), compression="zstd")
