"""`explain`: what the compiler did with a function, as text, as a page and as data."""

from functrans.inspect.explain.explanation import Explanation, explain

__all__ = ["Explanation", "explain"]
