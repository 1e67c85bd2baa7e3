"""An HTTP service that gives private labels: ``labeldp serve``."""
