"""Control flow: primitives whose parameters are programs."""

from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p

__all__ = ["cond_p", "scan_p", "while_p"]
