"""Pages as tests read them: elements that end, what is linked, and what is asked of a network."""

import re
from html.parser import HTMLParser

LINK = re.compile(r"https?://[^'\"\s<)]+")
NAMESPACES = {"http://www.w3.org/2000/svg"}


class Page(HTMLParser):
    """Every element ends where it should; `own`, `related` and `opens` are the links by line."""

    VOID = frozenset({"br", "meta", "input"})

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.stack, self.ids, self.text = [], [], []
        self.own, self.related, self.opens, self.names = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.stack
        self.external = {u for u in LINK.findall(text) if u not in NAMESPACES}

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.stack.append(tag)
        named = dict(attrs)
        self.ids += [named["id"]] if "id" in named else []
        self.own += named.get("data-own", "").split()
        self.related += named.get("data-t", "").split()
        self.opens += [named["data-open"]] if "data-open" in named else []
        self.names += [named["data-name"]] if "data-name" in named else []

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if "script" not in self.stack and "style" not in self.stack:
            self.text.append(data)

    def check_links(self):
        """What an element belongs to is there, and what a link opens."""
        assert set(self.related) <= set(self.own), set(self.related) - set(self.own)
        assert set(self.opens) <= set(self.names)
        assert len(set(self.names)) == len(self.names) and not self.external
