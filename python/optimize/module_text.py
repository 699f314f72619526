# SPDX-License-Identifier: Apache-2.0
"""The optimized module: the task's text, the kernels as text, and what decides between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Json = dict[str, Any]
OTHER_SHAPES = ("ragged", "small")

HEADER = """

# ---- Kernels -------------------------------------------------------------------------------------
# Written by `musacoder optimize`.  The module above is the original, and {name} runs it wherever
# the kernels below were not verified: `why_original(model, *inputs)` tells the reason.

"""
FOOTER = """

def why_original({parameters}) -> str:
    \"\"\"The reason why a call of the model runs the PyTorch original; "" where kernels run.\"\"\"
    return _kernels_of_{name}.why_not(model, args, kwargs)


_kernels_of_{name} = _Kernels(
    {name}, get_inputs, get_init_inputs, _KERNELS, {facts!r}
)
_kernels_of_{name}.install()
"""


def module_text(task: str, name: str, candidate: str, verdict: Json) -> str:
    """The text of the module.  `name` is the class, `verdict` that of the candidate."""
    footer = FOOTER.format(
        name=name, facts=facts_of(candidate, verdict), parameters="model, *args, **kwargs"
    )
    dispatch = (Path(__file__).parent / "dispatch.py").read_text(encoding="utf-8")
    dispatch = dispatch[dispatch.index("\nimport ") + 1 :]
    kernels = f"\n\n_KERNELS = {quoted(candidate)}\n"
    return task.rstrip("\n") + "\n" + HEADER.format(name=name) + dispatch + kernels + footer


def facts_of(candidate: str, verdict: Json) -> Json:
    """The verified facts, in the form of the dispatching part."""
    protocol, telemetry = verdict["protocol"], verdict["telemetry"]
    return {
        "mode": protocol["mode"],
        "sizes": sizes_of(verdict["outcome"]),
        "is_reduced": bool(telemetry["reduction"]["reason"]),
        "any_stream": "getCurrentCUDAStream" in candidate,
    }


def sizes_of(outcome: Json) -> list[dict[str, int]]:
    """The module's constants in the trials at other sizes; none unless all of these passed."""
    others = [trial for trial in outcome["trials"] if trial["shape"] in OTHER_SHAPES]
    if outcome["generality"] != 1 or not all(trial["passed"] for trial in others):
        return []
    found: list[dict[str, int]] = []
    for trial in others:
        sizes = {name: size for name, size in trial["constants"].items() if name.isidentifier()}
        if sizes not in found:
            found.append(sizes)
    return found


def quoted(text: str) -> str:
    """A literal of Python for a text, readable where that is possible."""
    for quote in ("'''", '"""'):
        is_plain = quote not in text and not text.endswith(("\\", quote[0]))
        if is_plain and "\r" not in text and "\0" not in text:
            return f"r{quote}{text}{quote}"
    return repr(text)
