"""What every page that labeldp writes shares: colours, the HTML around a body, inline pictures.

A page is one file. It needs nothing else: no request leaves it, and its content security policy
forbids any.
"""
