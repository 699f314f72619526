#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plug-ins in the real slime, verl and TRL, on a CPU.

    lab/hosts/host_contracts.py [--slime CHECKOUT] [--verl] [--trl]

slime: its own tests/plugin_contracts, with musacoder.slime.reward and a generate whose engine is
replaced (there is none on a CPU); the tests of tests/plugins; lab/hosts/slime_goldens.py.
verl: get_custom_reward_fn loads verl.py and calls it; lab/hosts/verl_goldens.py.
TRL: lab/hosts/trl_goldens.py.
The contract tests and the loading of rewards ask a real `musacoder serve` in front of the verifier
of the tests, which answers at once.  Needs what the hosts import.

Loss and gradient of the golden steps differ by rounding alone, but for the hosts' choices: with the
token mean, slime and verl do not count tokens of samples without a reward; slime has no Dr.GRPO;
slime and verl hold k3 to 10; slime and TRL do not hold log-ratios to 20; every host steps its
optimiser where no sequence is left; verl's losses, called without batch sizes, divide by what
rejection left.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ENGINE = """
import types
from musacoder import slime as hooks

async def _answer(args, sample, sampling_params):
    sample.append_response_tokens(args, tokens=[1, 2], log_probs=[-0.1, -0.2], text="fail",
                                  meta_info={"finish_reason": {"type": "stop"}})
    return sample

async def _post(url, body):
    return {"text": "yes", "meta_info": {"finish_reason": {"type": "stop"}}}

class _Tokenizer:
    eos_token = "<end>"
    def encode(self, text, add_special_tokens):
        return [1] * len(text)
    def apply_chat_template(self, turns, tokenize, add_generation_prompt):
        return "".join(f"[{t['role']}]{t['content']}" for t in turns) + "[assistant]"

class _Args:
    def __init__(self, args):
        self._args = args
    def __getattr__(self, name):
        return getattr(self._args, name, None)

async def generate(args, sample, sampling_params):
    from slime.rollout import sglang_rollout
    sglang_rollout.generate = _answer
    sglang_rollout.post = _post
    sglang_rollout.GenerateState = lambda args: types.SimpleNamespace(
        tokenizer=_Tokenizer(), aborted=False)
    sample.label = sample.label or "a/task"
    sample = await hooks.generate(_Args(args), sample, sampling_params)
    turns = sample.metadata["musacoder"]
    assert turns["outcomes"] == ["wrong", "pass"], turns
    assert abs(sample.reward - (-0.75 + 0.25 + 0.1)) < 1e-9
    assert sample.response_length == 2 and sample.tokens == [1, 2]
    return sample
"""


VERL = """
import asyncio, sys
from omegaconf import OmegaConf
from verl.trainer.ppo import reward
for name in ("compute_score", "compute_score_async"):
    hooks = {"custom_reward_function": {"path": sys.argv[1], "name": name}}
    # Version 0.9 has the key below "reward".
    found = reward.get_custom_reward_fn(OmegaConf.create({**hooks, "reward": hooks}))
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
    code = subprocess.run(command, cwd=checkout, env=environment, check=False).returncode
    tests = ["-m", "unittest", "discover", "-s", "tests/plugins", "-p", "*_test.py"]
    code = code or run_here(tests, MUSACODER_SLIME=str(checkout))
    return code or run_here(["lab/hosts/slime_goldens.py", str(checkout)])


def run_here(arguments: list[str], **environment: str) -> int:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment},
        check=False,
    ).returncode


def try_verl() -> int:
    code = run_here(["-c", VERL, str(ROOT / "python/musacoder/verl.py")])
    return code or run_here(["lab/hosts/verl_goldens.py"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slime", type=Path)
    parser.add_argument("--verl", action="store_true", help="the installed package")
    parser.add_argument("--trl", action="store_true", help="the installed package")
    arguments = parser.parse_args()
    if not (arguments.slime or arguments.verl or arguments.trl):
        parser.error("give --slime, --verl or --trl")
    main_file = ROOT / "python/musacoder/server/__main__.py"
    server = [sys.executable, str(main_file), "--port", "0", "--"]
    judge = [sys.executable, str(ROOT / "tests/serve/noop_judge.py")]
    with subprocess.Popen([*server, *judge], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        os.environ["MUSACODER_URL"] = process.stdout.readline().split()[-1]
        try:
            with tempfile.TemporaryDirectory() as folder:
                code = try_slime(arguments.slime.resolve(), Path(folder)) if arguments.slime else 0
            code = code or (try_verl() if arguments.verl else 0)
            return code or (run_here(["lab/hosts/trl_goldens.py"]) if arguments.trl else 0)
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main())
