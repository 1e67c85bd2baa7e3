"""The common parts of pages and pictures: templates, colours, axes, numbers.

A page is one file that needs nothing else. It makes no request, and its content security policy
forbids requests. Text from files gets into it only through the templates of ``document``, which
escape everything but ``Markup``. ``Markup`` is built from numbers and escaped text only.
"""
