"""An exception at any chosen moment of the library's own code, as Ctrl-C would raise it."""

import functools
import sys
from pathlib import Path

import brmdp

__all__ = ["StopAt", "Stopped", "moments_of"]

SOURCE = Path(brmdp.__file__).parent


class Stopped(BaseException):
    """Like KeyboardInterrupt, which may arrive between any two instructions."""


@functools.cache
def moments_of(filename):
    """What counts as a moment in a file.

    In the code of the agents every instruction does, elsewhere lines or calls.
    """
    if not filename.startswith(str(SOURCE)):
        return None
    if Path(filename).name in ("episodic.py", "agent.py"):
        return "opcode"
    return "call" if Path(filename).parent.name in ("planning", "_kernels") else "line"


class StopAt:
    """Raise at the n-th moment of the library's own code."""

    def __init__(self, moment):
        self.left = moment
        self.where = None

    def trace(self, frame, event, argument):
        wanted = moments_of(frame.f_code.co_filename)
        if wanted is None:
            return None
        if event == "call":
            frame.f_trace_opcodes = wanted == "opcode"
        if event == wanted:
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise Stopped
        return self.trace

    def run(self, action):
        """Carry out the action; returns whether it was stopped."""
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            action()
        except Stopped:
            return True
        finally:
            sys.settrace(before)
        return False
