# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for objects that do not exist yet while the recorder runs."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from typing import Any

USES_MAX = 10_000  # Bounds a candidate's loop over stand-ins.
_UNPACK = dis.opmap["UNPACK_SEQUENCE"]


class Stop(BaseException):
    """Ends the recording: the candidate needs an extension that is not built yet."""


class StandIn:
    """Stands for an extension, an operator, or an argument of `forward`.

    Calling a stand-in ends the recording. With `lasts`, every operation on it returns another
    stand-in instead, and every check of an argument is true.
    """

    def __init__(self, lasts: bool = False) -> None:
        self._lasts = lasts

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._next()

    def __call__(self, *_args: object, **_kwargs: object) -> StandIn:
        if not self._lasts:
            raise Stop
        return self._next()

    def _next(self) -> StandIn:
        global _uses
        _uses += 1
        if _uses > USES_MAX:
            raise Stop
        return StandIn(self._lasts)

    @classmethod
    def __torch_function__(
        cls, _function: Any, _types: Any, _args: Any = (), _kwargs: Any = None
    ) -> StandIn:
        return StandIn(lasts=True)._next()

    def __bool__(self) -> bool:
        self._next()
        return True

    def __index__(self) -> int:
        return 1

    __int__ = __index__

    def __float__(self) -> float:
        return 1.0

    def __eq__(self, other: object) -> bool:
        self._next()
        return other != 0

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        self._next()
        return False

    def __gt__(self, other: object) -> bool:
        self._next()
        return True

    __le__ = __ge__ = __gt__
    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[StandIn]:
        """Yields as many items as `a, b = x.shape` needs, and one item in other loops."""
        frame = sys._getframe(1)
        code, at = frame.f_code.co_code, frame.f_lasti
        count = code[at + 1] if code[at] == _UNPACK else 1
        return iter([self._next() for _ in range(count)])


_uses = 0


def _operator(self: StandIn, *_: object) -> StandIn:
    return self._next()


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    setattr(StandIn, f"__{_name}__", _operator)
    setattr(StandIn, f"__r{_name}__", _operator)
for _name in "neg pos abs invert getitem".split():
    setattr(StandIn, f"__{_name}__", _operator)
