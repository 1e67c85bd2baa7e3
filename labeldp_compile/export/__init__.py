"""The targets of ``labeldp export --to``, each a module or a folder that nothing else imports.

The name of the module is the name of the target, and its ``target`` is a click command. Deleting
the module deletes the target. The trainer's targets lie in ``labeldp_trainer.export``.
"""
