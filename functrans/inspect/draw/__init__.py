"""`draw`: the graph of a program as a picture."""

from functrans.inspect.draw.drawing import Drawing, draw

__all__ = ["Drawing", "draw"]
