"""The sample table: doctor visits of 20,190 person-years, with nine public features.

RAND Health Insurance Experiment; ``specs/data/make_randhie.py`` names the source. The data is in
the public domain. A checkout has the file in ``specs/data``; a wheel brings it as package data.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

LABEL = "visits"
LOW, HIGH = 0, 24
"""The declared range: more than two visits a month count as two a month."""
_NAMES = {
    "mdvis": LABEL,
    "lncoins": "log_coinsurance",
    "idp": "individual_deductible",
    "lpi": "log_incentive",
    "fmde": "log_max_expense",
    "physlm": "physical_limits",
    "disea": "chronic_diseases",
    "hlthg": "health_good",
    "hlthf": "health_fair",
    "hlthp": "health_poor",
}


def sample_table() -> pa.Table:
    """The table, with column names that can be read; [20190] rows."""
    shipped = Path(__file__).parent / "randhie.parquet"
    checkout = Path(__file__).parents[3] / "specs" / "data" / "randhie.parquet"
    table = pq.read_table(shipped if shipped.is_file() else checkout)
    return table.rename_columns([_NAMES[name] for name in table.column_names])
