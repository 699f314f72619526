# SPDX-License-Identifier: Apache-2.0
"""The backends, by their names in verdicts (docs/architecture.md tells how one is added)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from harness.worker import view
from harness.worker.cuda_place import cuda_device, cuda_files, cuda_place
from harness.worker.place import HOST_PLACE, Place, host_files


@dataclass(frozen=True)
class Backend:
    """The device, where processes compute on it, and the files that they see for it."""

    device: Callable[[], torch.device]  # As it is set for all who compute; both after the forks.
    place: Callable[[], Place]
    files: view.DeviceFiles


BACKENDS = {
    "cpu": Backend(lambda: HOST_PLACE.device, lambda: HOST_PLACE, host_files),
    "cuda": Backend(cuda_device, cuda_place, cuda_files),
}
