# SPDX-License-Identifier: Apache-2.0
"""The device that a candidate is written for, where the device that runs it is another one.

A question's `described` has attributes of that device, by their names in PyTorch. What it does not
have is the running device's.
"""

from __future__ import annotations

from collections.abc import Mapping

# Numbers of the driver's attributes (CUdevice_attribute) by names of PyTorch. One amount of shared
# memory is a block's, with and without its kernel's asking for more, and a multiprocessor's.
ATTRIBUTES = {
    "shared_memory_per_block": (8, 81, 97),
    "multi_processor_count": (16,),
    "max_threads_per_multi_processor": (39,),
    "major": (75,),
    "minor": (76,),
}
_SHARED_RESERVED = 111  # None of a block's is kept from it, or no block would have all.


def attributes_of(described: Mapping[str, int]) -> dict[int, int]:
    """The driver's attributes."""
    found = {number: value for name, value in described.items() for number in ATTRIBUTES[name]}
    if "shared_memory_per_block" in described:
        found[_SHARED_RESERVED] = 0
    return found
