"""Everything Holdfast can refuse, as one tree.

    HoldfastError                    code, exit_code
    +-- InvalidParameter             a value outside what the theory or the machine allows   (also a ValueError)
    |   +-- InexactParameter         a float where privacy needs an exact number             (also a TypeError)
    |   +-- RequestTooLarge          would not fit in memory, or not in 64-bit integers
    +-- KeyMisuse                    a noise key used in a way that would repeat or expose noise
    |   +-- StreamReused             the same words asked for twice
    |   +-- KeyClosed                used after close()
    |   +-- ForkedKey                used in a process that did not open it
    |   +-- KeyExhausted             more keystream than the stated collision bounds allow
    +-- PrecisionExhausted           balls could not be separated at the largest precision tried

Every message has three parts: what is wrong, what was found (public things only), what to do. A message never holds a
confidential count, a key or noise. `code` is stable and documented in docs/errors.md; `exit_code` is what the command line returns.
"""

from __future__ import annotations

from typing import ClassVar


class HoldfastError(Exception):
    """Base of every error raised on purpose; `str(error)` is one complete sentence or more."""

    code: ClassVar[str] = "holdfast"
    exit_code: ClassVar[int] = 1


class InvalidParameter(HoldfastError, ValueError):
    """A parameter is outside what the theory or the machine allows."""

    code = "invalid-parameter"
    exit_code = 2


class InexactParameter(InvalidParameter, TypeError):
    """A float was given where privacy depends on the number; the message shows the string to write instead."""

    code = "inexact-parameter"


class RequestTooLarge(InvalidParameter):
    """The request would not fit in memory or could leave 64-bit integers."""

    code = "request-too-large"


class KeyMisuse(HoldfastError, RuntimeError):
    """A noise key was used in a way that would repeat or expose noise."""

    code = "key-misuse"
    exit_code = 3


class StreamReused(KeyMisuse):
    """One labelled stream serves one noise vector; it was asked for a second time."""

    code = "stream-reused"


class KeyClosed(KeyMisuse):
    """The key or stream was closed; its secret is gone."""

    code = "key-closed"


class ForkedKey(KeyMisuse):
    """A key or stream was used in a process other than the one that opened it."""

    code = "forked-key"


class KeyExhausted(KeyMisuse):
    """Going on would break the collision bounds stated in docs/exact-numbers.md."""

    code = "key-exhausted"


class PrecisionExhausted(HoldfastError, ArithmeticError):
    """Two exact numbers could not be told apart at the largest precision tried."""

    code = "precision-exhausted"
    exit_code = 4
