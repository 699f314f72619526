# SPDX-License-Identifier: Apache-2.0
"""The device for which a candidate is written, if it runs on a different device.

A request's `described` has attributes of that device, by their names in PyTorch. For other
attributes the running device's values apply.
"""

from __future__ import annotations

from collections.abc import Mapping

# Numbers of the driver's attributes (CUdevice_attribute) by names of PyTorch. A single amount of
# shared memory is used for a block, with and without opt-in, and for a multiprocessor.
ATTRIBUTES = {
    "shared_memory_per_block": (8, 81, 97),
    "multi_processor_count": (16,),
    "max_threads_per_multi_processor": (39,),
    "major": (75,),
    "minor": (76,),
}
_SHARED_RESERVED = 111  # Zero, so that a block can use all of it.


def attributes_of(described: Mapping[str, int]) -> dict[int, int]:
    """The driver's attributes."""
    found = {number: value for name, value in described.items() for number in ATTRIBUTES[name]}
    if "shared_memory_per_block" in described:
        found[_SHARED_RESERVED] = 0
    return found
