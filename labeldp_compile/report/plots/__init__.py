"""The pictures of a report; each module draws one on axes that it is given."""
