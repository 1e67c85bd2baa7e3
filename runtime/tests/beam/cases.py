"""Rows that both environments know."""

ODD = [None, "x", 1e300, float("nan"), True, 10**30, {"a": 1}, b"1", [1]]
ROWS = [{"visit": index, "y": index % 12, "day": index // 10} for index in range(60)]
GROUP_VALUES = [0, 1, None, "x", 9]
