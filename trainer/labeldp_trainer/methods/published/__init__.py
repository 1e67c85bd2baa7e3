"""Methods for comparison with papers. The recommended methods are one folder above."""
