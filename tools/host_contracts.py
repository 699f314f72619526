#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our hooks in real checkouts of slime and verl, on a CPU.

    python tools/host_contracts.py [--slime CHECKOUT] [--verl CHECKOUT]

slime: its own tests/plugin_contracts, with musacoder.slime.reward and a generate whose engine is
replaced (there is none on a CPU).  verl: get_custom_reward_fn loads verl.py and calls it.  Both ask
a real `musacoder serve` in front of the verifier of the tests, which answers at once.  Needs what
the checkouts import (pytest, numpy, torch, aiohttp, httpx; omegaconf for verl).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

ENGINE = """
import types
from musacoder import slime as hooks

async def _answer(args, sample, sampling_params):
    sample.append_response_tokens(args, tokens=[1, 2], log_probs=[-0.1, -0.2], text="fail",
                                  meta_info={"finish_reason": {"type": "stop"}})
    return sample

async def _post(url, body):
    return {"text": "yes", "meta_info": {}}

class _Tokenizer:
    eos_token = "<end>"
    def apply_chat_template(self, turns, tokenize, add_generation_prompt):
        return "".join(f"[{t['role']}]{t['content']}" for t in turns) + "[assistant]"

class _Args:
    def __init__(self, args):
        self._args = args
    def __getattr__(self, name):
        return getattr(self._args, name, 0)

async def generate(args, sample, sampling_params):
    from slime.rollout import sglang_rollout
    sglang_rollout.generate = _answer
    sglang_rollout.post = _post
    sglang_rollout.GenerateState = lambda args: types.SimpleNamespace(tokenizer=_Tokenizer())
    sample.label = sample.label or "a/task"
    sample = await hooks.generate(_Args(args), sample, sampling_params)
    turns = sample.metadata["musacoder"]
    assert turns["outcomes"] == ["wrong", "pass"], turns
    assert abs(sample.reward - (-0.75 + 0.25 + 0.1)) < 1e-9
    assert sample.response_length == 2 and sample.tokens == [1, 2]
    return sample
"""


VERL = """
import importlib.util, sys, types
from pathlib import Path
checkout, hook = sys.argv[1:]
sys.path.insert(0, checkout)
# Of verl only the loading of rewards: its package imports Ray and what trains.
utils = ("verl.utils.reward_score", "verl.utils.transferqueue_utils")
for name in ("ray", "verl", "verl.utils", *utils):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [str(Path(checkout, *name.split(".")))]
sys.modules["ray"].remote = lambda **_: (lambda f: f)
sys.modules["verl.utils.reward_score"].default_compute_score = None
sys.modules["verl.utils.transferqueue_utils"].tqbridge = lambda *a, **k: (lambda f: f)
path = Path(checkout, "verl/trainer/ppo/reward.py")
spec = importlib.util.spec_from_file_location("reward", path)
reward = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reward)
import asyncio
for name in ("compute_score", "compute_score_async"):
    found = reward.get_custom_reward_fn({"custom_reward_function": {"path": hook, "name": name}})
    score = found(data_source="forge", solution_str="yes", ground_truth="a/task", extra_info={})
    score = asyncio.run(score) if asyncio.iscoroutine(score) else score
    assert score["score"] == 1.0 and score["scored"] == 1.0, score
    print(f"verl: get_custom_reward_fn loads {name}: {score}")
"""


def try_slime(checkout: Path, folder: Path) -> int:
    (folder / "contract_hooks.py").write_text(ENGINE)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(checkout), str(ROOT / "python"), str(folder)]),
        "SLIME_CONTRACT_CUSTOM_RM_PATH": "musacoder.slime.reward",
        "SLIME_CONTRACT_CUSTOM_GENERATE_FUNCTION_PATH": "contract_hooks.generate",
    }
    command = [sys.executable, "-m", "pytest", "-q", "tests/plugin_contracts"]
    return subprocess.run(command, cwd=checkout, env=environment, check=False).returncode


def try_verl(checkout: Path) -> int:
    hook = ROOT / "python/musacoder/verl.py"
    return subprocess.run(
        [sys.executable, "-c", VERL, str(checkout), str(hook)], check=False
    ).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slime", type=Path)
    parser.add_argument("--verl", type=Path)
    arguments = parser.parse_args()
    if not arguments.slime and not arguments.verl:
        parser.error("give --slime or --verl: a checkout")
    main_file = ROOT / "python/musacoder/server/__main__.py"
    server = [sys.executable, str(main_file), "--port", "0", "--"]
    judge = [sys.executable, str(ROOT / "tests/serve/noop_judge.py")]
    with subprocess.Popen([*server, *judge], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        os.environ["MUSACODER_URL"] = process.stdout.readline().split()[-1]
        try:
            with tempfile.TemporaryDirectory() as folder:
                code = try_slime(arguments.slime.resolve(), Path(folder)) if arguments.slime else 0
            return code or (try_verl(arguments.verl.resolve()) if arguments.verl else 0)
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main())
