# SPDX-License-Identifier: Apache-2.0
"""Removes operators from a candidate's dispatcher (device/facade/runtime/guard.cc)."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterable
from typing import Any


class OperatorGuard:
    """Removes operators permanently, and reports which were called nevertheless."""

    def __init__(self, library: Any) -> None:
        """`library` has mc_guard_remove and mc_guard_refused (device/facade/runtime/runtime.h)."""
        self._library = library
        library.mc_guard_refused.restype = ctypes.c_char_p

    def remove(self, dispatch_key: str, allowed: Iterable[str], policy: str) -> None:
        """Removes all operators of a backend except the allowed ones, which are named without
        "aten::".
        """
        words = (dispatch_key, "\n".join(allowed), policy)
        if self._library.mc_guard_remove(*(word.encode() for word in words)) < 0:
            raise RuntimeError(f"operators cannot be removed for {dispatch_key!r}")

    def refused(self) -> list[dict[str, Any]]:
        """[{"name", "count"}] of the calls that were refused."""
        calls: list[dict[str, Any]] = json.loads(self._library.mc_guard_refused())
        return calls
