"""What the compiler did, as text, pictures and times: `explain`, `draw` and `profile`."""

from functrans.inspect.draw import Drawing, draw
from functrans.inspect.explain import Explanation, explain
from functrans.inspect.profile import Profile, profile

__all__ = ["Drawing", "Explanation", "Profile", "draw", "explain", "profile"]
