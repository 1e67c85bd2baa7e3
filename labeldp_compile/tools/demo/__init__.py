"""The sample data of ``labeldp demo``, and the models that it compares."""
