"""A page as a reader without a browser sees it."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "input", "img"}


class Reader(HTMLParser):
    """Tags in order, the text by section, numbers by the field that they state, table rows."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.fields, self.links, self.handlers = [], [], [], []
        self.sections, self.rows, self.scripts = {}, [], []
        self._section, self._open = "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append(tag)
        if tag not in VOID:
            self._open.append(tag)
        if tag == "section":
            self._section = given["id"]
        if tag == "data" and "data-field" in given:
            self.fields.append((given["data-field"], given["value"]))
        if tag == "tr":
            self.rows.append((self._section, []))
        if tag == "data" and "tr" in self._open:
            self.rows[-1][1].append(given["value"])
        self.links += [v for k, v in attributes if k in ("src", "href", "xlink:href", "action")]
        self.handlers += [k for k, _ in attributes if k.startswith("on")]

    def handle_endtag(self, tag):
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data):
        if "script" in self._open:
            self.scripts.append(data)
        self.sections[self._section] = self.sections.get(self._section, "") + data
