"""Tables: streaming Parquet and CSV files, and turning a column into labels."""
