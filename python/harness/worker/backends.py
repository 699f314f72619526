# SPDX-License-Identifier: Apache-2.0
"""The backends, by their names in verdicts (docs/architecture.md describes how to add one)."""

from harness.worker.cuda_place import CudaPlace
from harness.worker.musa_place import MusaPlace
from harness.worker.place import Place
from harness.worker.ptx_place import PtxPlace

BACKENDS: dict[str, type[Place]] = {
    "cpu": PtxPlace,
    "cuda": CudaPlace,
    "musa": MusaPlace,
}
