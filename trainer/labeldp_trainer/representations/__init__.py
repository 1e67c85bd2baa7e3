"""The kinds of representations: each file has the options of some, and how they learn and map."""
