# SPDX-License-Identifier: Apache-2.0
"""The rows of kind `variants` of the forge, for text_truth.py: one JSON object an answer."""

from __future__ import annotations

import json
import re
from typing import Any

ROLES = ("baseline", "single_feature", "algorithm", "composite")
MEMBERS = {"features", "reason", "code"}
ALGORITHMS = {"atomics", "online_softmax", "split_k", "welford"}
# Patterns that the code of a feature has and no other code of the forge; they are written here
# anew, and not read from the templates.
MARKS = {
    "atomics": r"atomicAdd\(",
    "cached_row": r"extern __shared__",
    "coarsened": r"(\w+) = (\w+); \1 < \2 \+ \d+ && ",
    "grid_stride": r"= gridDim\.x \* blockDim\.x",
    "online_softmax": r"(\w+) = \1 \* expf\(",
    "register_tiles": r"^ +(?!__shared__)\w+ \w+\[\d+\](\[\d+\])? = \{\};",
    "rows_and_columns": r"for \(int \w+ = threadIdx\.x;|= blockIdx\.y \* \d+ \+ threadIdx\.y;",
    "shared_memory": r"^ +__shared__ \w+ \w+\[\d+\];",
    "shared_memory_tiles": r"__shared__ \w+ \w+\[\d+\]\[\d+\]",
    "split_k": r"_finish\w*\((?![^$]*atomicAdd)",
    "unrolled": r"int \w+ = \w+ \+ \w+ \* \d+;|^ +(?!__shared__)\w+ \w+\[\d+\];",
    "vectorised": r"\*\(const \w+\*\)\(",
    "warp_shuffles": r"__shfl_xor_sync\(",
    "welford": r"\+= \w+ / (\(\w+ \+ 1\)|\w+);",
}
BROKEN = "not the schema: "


def features_in(code: str) -> set[str]:
    found = {name for name, mark in MARKS.items() if re.search(mark, code, re.MULTILINE)}
    return found - {"split_k"} if "atomics" in found else found


def members_of(answer: str) -> list[tuple[str, dict[str, Any]]]:
    """(role, variant) of each; raises ValueError where the answer is not as the schema has it."""
    whole = json.loads(answer)
    if not isinstance(whole, dict) or tuple(whole) != ROLES:
        raise ValueError(f"its members are not {', '.join(ROLES)}")
    found = [("baseline", whole["baseline"])]
    found += [("single_feature", one) for one in whole["single_feature"]]
    found += [(role, whole[role]) for role in ROLES[2:] if whole[role] is not None]
    for role, one in found:
        if not isinstance(one, dict) or set(one) != MEMBERS:
            raise ValueError(f"the members of {role} are not {', '.join(sorted(MEMBERS))}")
    if len({one["code"] for _, one in found}) < len(found):
        raise ValueError("two codes are equal")
    return found


def texts_of(answer: str) -> list[str]:
    """Each variant as an answer of its own: role, features, reasons and the code."""
    try:
        return [
            f"{role} with {', '.join(one['features']) or 'no feature'}\n"
            + "\n".join(one["reason"])
            + f"\n```python\n{one['code']}```\n"
            for role, one in members_of(answer)
        ]
    except (ValueError, TypeError) as error:
        return [BROKEN + str(error)]


def is_true(line: str, code: str) -> bool | None:
    """True if the first line of such a text is true; None for other lines."""
    if line.startswith(BROKEN):
        return False
    match = re.fullmatch(rf"({'|'.join(ROLES)}) with (no feature|\w+(?:, \w+)*)", line)
    if match is None:
        return None
    features = set() if match[2] == "no feature" else set(match[2].split(", "))
    is_algorithm = features <= ALGORITHMS
    fits = {
        "baseline": not features,
        "single_feature": len(features) == 1 and not is_algorithm,
        "algorithm": len(features) == 1 and is_algorithm,
        "composite": len(features) > 1,
    }
    return fits[match[1]] and features == features_in(code)
