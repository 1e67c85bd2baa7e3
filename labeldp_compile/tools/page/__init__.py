"""What every page and picture that labeldp writes shares: templates, colours, axes, numbers.

A page is one file. It needs nothing else: no request leaves it, and its content security policy
forbids any. Strings of others reach it through the templates of ``document``, which escape whatever
is not ``Markup``; ``Markup`` is made of numbers and of escaped text alone.
"""
