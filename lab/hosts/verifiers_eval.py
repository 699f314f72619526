#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python/verifiers under verifiers' own vf-eval, on a CPU: tasks of ours and a scripted model.

    lab/hosts/verifiers_eval.py --vf-eval VENV/bin/vf-eval [--musacoder PROGRAM] [--tasks 20]

The virtual environment has `pip install ./python ./python/verifiers`.  Of each five tasks the model
answers three at once, one in its second turn, and one in a language that the judge does not
support: that one has to end as an error, and all others with a reward of 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from program import MUSACODER, Server, honest  # noqa: E402

UNSUPPORTED = """
import torch, warp

@warp.kernel
def kernel(x: warp.array(dtype=float)):
    x[warp.tid()] = 0.0

class ModelNew(torch.nn.Module):
    def forward(self, *inputs):
        warp.launch(kernel, dim=1, inputs=inputs)
        return inputs[0]
"""


def answer_to(tasks: list[dict[str, Any]], messages: list[dict[str, str]]) -> str:
    asked = "\n".join(str(message["content"]) for message in messages)
    index = next(i for i, task in enumerate(tasks) if task["code"].strip() in asked)
    if index % 5 == 4:
        return UNSUPPORTED
    is_first = not any(message["role"] == "assistant" for message in messages)
    right = f"```python\n{honest(tasks[index]['id'])}\n```"
    return "I cannot." if is_first and index % 5 == 3 else right


def streamed(text: str) -> tuple[int, str, str]:
    """The events of a streamed chat completion."""
    head = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    delta = {"role": "assistant", "content": text}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**head, "choices": [], "usage": usage},
    ]
    events = [*(json.dumps(chunk) for chunk in chunks), "[DONE]"]
    return 200, "text/event-stream", "".join(f"data: {event}\n\n" for event in events)


def run_eval(arguments: argparse.Namespace, model: str, service: str) -> list[dict[str, Any]]:
    """The traces of the run."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [arguments.vf_eval, "musacoder-environment", "-n", str(arguments.tasks),
             "--env.turns", "2", "--client.base-url", model, "-m", "scripted", "--no-push",
             "--no-rich", "-o", folder, "--max-concurrent", "2"],
            env={**os.environ, "MUSACODER_URL": service, "MUSACODER": arguments.musacoder,
                 "PATH": f"{Path(arguments.vf_eval).parent}:{os.environ['PATH']}"},
            stdout=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        (found,) = Path(folder).glob("*/traces.jsonl")
        episodes = [json.loads(line) for line in found.read_text().splitlines()]
    return [trace for episode in episodes for trace in episode.get("traces", [episode])]


def described(trace: dict[str, Any]) -> str:
    error = (trace["errors"] or [{}])[-1].get("message", "")
    reward = (trace["rewards"].get("kernel") or {}).get("score")
    kind = "unsupported" if "Unscored: unsupported" in error else error
    return f"ok={trace['ok']} reward={reward} error={kind}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vf-eval", required=True)
    parser.add_argument("--musacoder", default=MUSACODER)
    parser.add_argument("--tasks", type=int, default=20)
    arguments = parser.parse_args()
    listed = subprocess.run(
        [arguments.musacoder, "task", "list", "--json"], stdout=subprocess.PIPE, check=True
    )
    tasks = [json.loads(line) for line in listed.stdout.splitlines()]
    model = Server(lambda _, request: streamed(answer_to(tasks, request["messages"])))
    command = [arguments.musacoder, "serve", "--port", "0", "--backend", "cpu", "--seed", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            traces = run_eval(arguments, model.url, process.stdout.readline().split()[-1])
        finally:
            process.terminate()
            model.stop()
    counts = Counter(described(trace) for trace in traces)
    for line, count in counts.items():
        print(f"{count:4}  {line}")
    unsupported = arguments.tasks // 5
    return int(counts != Counter({
        "ok=True reward=1.0 error=": arguments.tasks - unsupported,
        "ok=False reward=None error=unsupported": unsupported,
    }))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
