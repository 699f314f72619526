# SPDX-License-Identifier: Apache-2.0
"""Which ATen operators run: PyTorch's record-function callback, set from C++."""

from __future__ import annotations

import ctypes
import json
from typing import Any

from harness.worker.wire import Json


class AtenRecorder:
    """Counts the operators of one process between `start` and `stop`."""

    def __init__(self, library: Any) -> None:
        """`library` has what emu/torch/shim.h declares of recording. REQUIRES: no candidate ran."""
        self.library = library
        library.mc_guard_know()  # Later ones are a candidate's own.
        library.mc_shim_record_start.restype = None
        library.mc_shim_record_stop.restype = ctypes.c_char_p

    @staticmethod
    def load(path: str) -> AtenRecorder:
        return AtenRecorder(ctypes.PyDLL(path, mode=ctypes.RTLD_GLOBAL))

    def start(self) -> None:
        self.library.mc_shim_record_start()

    def stop(self) -> Json:
        """The operators called since `start`, from wherever: {"aten::empty": 3}."""
        calls: Json = json.loads(self.library.mc_shim_record_stop())
        return calls
