"""Methods that exist to be compared with the papers; what to use stands one folder above."""
