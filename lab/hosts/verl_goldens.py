#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped"
"""The golden files of src/rl, and whole episodes, through verl's own functions, on a CPU.

    export VERL_USE_EXTERNAL_MODULES=musacoder.verl_hooks
    PYTHONPATH=python python lab/hosts/verl_goldens.py

Needs verl 0.9.1 with what it imports (TransferQueue and its trainers' packages too).  Whole steps
(step.json) go through verl's rollout correction, `compute_advantage` and its losses in the order of
its trainer; episodes through its agent loop worker, with a stand-in for the engine (vLLM, SGLang)
and for the service.

Differences by choice of verl's: a k3 above 10 is cut to 10; dual clip is always on; no floor for
the spread.  Token mean counts tokens after samples are left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("VERL_USE_EXTERNAL_MODULES", "musacoder.verl_hooks")

import torch

from host_goldens import NAN, TOLERANCE, byte_tokenizer, cases, differs, group_of, rows

import hosts
import numpy as np
import verl
from omegaconf import OmegaConf
from tensordict import TensorDict
from verl.experimental.agent_loop import agent_loop
from verl.trainer.config import AlgoConfig
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_and_add_to_batch
from verl.workers.config import ActorConfig
from verl.workers.rollout.replica import TokenOutput

from musacoder import rules, verl_hooks
from musacoder.verl import UNSCORED, UNSUPPORTED

MODES = {
    "sequence_mean": "seq-mean-token-mean",
    "token_mean": "token-mean",
    "dr_grpo": "seq-mean-token-sum-norm",
}
TASK = "class Model:\n    pass\n"
RESPONSE_LENGTH = 40


# ---- Whole steps --------------------------------------------------------------------------------


def padded(values: list[list[float]]) -> torch.Tensor:
    table = torch.zeros(len(values), max(map(len, values)))
    for i, row in enumerate(values):
        table[i, : len(row)] = torch.tensor(row)
    return table


def batch_of(case: dict[str, Any]) -> verl.DataProto:
    """The batch as verl's trainer has it before rollout correction."""
    batch = case["batch"]
    mask = padded(rows(batch, "mask"))
    rewards = torch.zeros_like(mask)
    for i, reward in enumerate(batch["rewards"]):
        rewards[i, 0] = UNSCORED if reward is None else reward
        if reward is None:
            mask[i] = 0  # Episode does the same.
    tensors = {
        "response_mask": mask,
        "token_level_rewards": rewards,
        "old_log_probs": padded(rows(batch, "logp_old", 0.0)),
        "rollout_log_probs": padded(rows(batch, "logp_rollout", 0.0)),
    }
    uids = np.array([str(group) for group in group_of(batch)], dtype=object)
    return verl.DataProto(TensorDict(tensors, batch_size=len(mask)), {"uid": uids})


def planned(case: dict[str, Any]) -> verl.DataProto:
    data, options = batch_of(case), case["options"]
    if options["mirror_pop"] is not None:
        correction = {
            "rollout_is": None,
            "rollout_rs": "mirror_pop",
            "rollout_rs_threshold": options["mirror_pop"]["delta"],
        }
        data, metrics = compute_rollout_correction_and_add_to_batch(data, correction)
        assert "rollout_corr/mirror_pop_rejected" in metrics, metrics
    config = AlgoConfig(norm_adv_by_std_in_grpo=options["scale"] == "std")
    return compute_advantage(data, adv_estimator="musacoder", config=config)


def run_step(case: dict[str, Any], sizes: dict[str, Any]) -> list[float]:
    """Loss and gradient by the functions that verl's actor calls (workers/utils/losses.py)."""
    options, batch = case["options"], case["batch"]
    data = planned(case)
    new = padded(rows(batch, "logp_new", 0.0)).requires_grad_()
    config = ActorConfig(
        strategy="fsdp",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        clip_ratio_low=options["eps_low"],
        clip_ratio_high=options["eps_high"],
        clip_ratio_c=1e9,
        loss_agg_mode=MODES[options["mode"]],
    )
    config.global_batch_info.update(sizes)
    mask = data.batch["response_mask"]
    loss, _ = core_algos.compute_policy_loss_vanilla(
        data.batch["old_log_probs"],
        new,
        data.batch["advantages"],
        mask,
        config.loss_agg_mode,
        config,
    )
    if options["beta"]:
        kl = core_algos.kl_penalty(new, padded(rows(batch, "logp_ref", 0.0)), "low_var_kl")
        loss = loss + options["beta"] * core_algos.agg_loss(
            kl, mask, config.loss_agg_mode, **config.global_batch_info
        )
    loss.backward()
    assert new.grad is not None
    lengths = [len(row) for row in rows(batch, "mask")]
    gradient = [float(g) for i, n in enumerate(lengths) for g in new.grad[i, :n]]
    return [float(loss.detach()), *gradient]


def sizes_of(case: dict[str, Any]) -> dict[str, Any]:
    """The denominators that verl 0.9.1's trainer hands to the loss: those before rejection."""
    mask = batch_of(case).batch["response_mask"]
    return {
        "dp_size": 1,
        "global_batch_size": len(mask),
        "batch_num_tokens": int(mask.sum()),
        "loss_scale_factor": case["options"]["length_max"],
    }


def check_steps() -> None:
    for case in cases("step"):
        options = case["options"]
        if options["std_floor"]:
            print(f"  step {case['name']!r}: left out (verl has no such option)")
            continue
        sizes = sizes_of(case)
        scale = 1.0
        if options["mode"] == "token_mean":
            scale = sum(map(sum, rows(case["batch"], "mask"))) / sizes["batch_num_tokens"]
        expected = [scale * value for value in [case["loss"], *case["gradient"]]]
        error = differs(run_step(case, sizes), expected)
        note = f", times {scale:.4f} (tokens of samples left out are not counted)"
        print(f"  step {case['name']!r}: difference {error:.1e}{note if scale != 1 else ''}")
        assert error < TOLERANCE, case["name"]
        data = planned(case)
        for i, A in enumerate(case["advantage"]):
            mask = data.batch["response_mask"][i]
            assert bool(mask.any()) == (A is not None and sum(rows(case["batch"], "mask")[i]) > 0)


def check_denominators() -> None:
    """Checks that verl divides by the kept tokens if it lacks the trainer's sizes."""
    case = next(case for case in cases("step") if case["name"] == "defaults")
    fixed = run_step(case, sizes_of(case))
    free = run_step(case, {})
    left = sum(A is not None for A in case["advantage"])
    with_tokens = int((planned(case).batch["response_mask"].sum(-1) > 0).sum())
    ratio = free[1] / fixed[1]
    print(f"  the gradient of the first token without the trainer's sizes: times {ratio:.4f}")
    assert abs(ratio - len(case["advantage"]) / with_tokens) < 1e-4, (ratio, left, with_tokens)


def check_advantages() -> None:
    worst = 0.0
    for case in cases("advantage"):
        if case["scale"] != "std" or case["std_floor"] or case["eps"] != 1e-6:
            continue
        rewards = torch.zeros(len(case["rewards"]), 3)
        rewards[:, 2] = torch.tensor([UNSCORED if r is None else r for r in case["rewards"]])
        mask = torch.ones_like(rewards)
        data = verl.DataProto(
            TensorDict(
                {"response_mask": mask, "token_level_rewards": rewards}, batch_size=len(mask)
            ),
            {"uid": np.array(["one"] * len(mask), dtype=object)},
        )
        data = compute_advantage(data, adv_estimator="musacoder", config=AlgoConfig())
        found = data.batch["advantages"][:, 0].tolist()
        expected = [0.0 if A is None else A for A in case["advantage"]]
        # Rewards are fp32 in verl: a spread of 1e-6 around 0.1 has an error of 1e-2 of itself.
        spread = [r for r in case["rewards"] if r is not None]
        if not spread or case["fate"] != "spread" or max(spread) - min(spread) > 1e-3:
            worst = max(worst, differs(found, expected))
        kept = data.batch["response_mask"][:, 0].tolist()
        assert kept == [float(A is not None) for A in case["advantage"]], case
    for case in cases("advantage", "minimum"):
        totals = [UNSCORED if r is None else r for r in case["rewards"]]
        for i in case["unsupported"]:
            totals[i] = UNSUPPORTED
        rewards = torch.tensor([[total] for total in totals])
        found_A, _ = verl_hooks.advantage(
            rewards, torch.ones_like(rewards), index=[0] * len(rewards)
        )
        expected_A = [0.0 if A is None else A for A in rules.advantages(case["R"])]
        worst = max(worst, differs(found_A[:, 0].tolist(), expected_A))
    print(f"  advantages: difference {worst:.1e}")
    assert worst < TOLERANCE


def check_mirror_pop() -> None:
    from verl.trainer.ppo import rollout_corr_helper

    for case in cases("mirror_pop"):
        old, rollout, mask = (
            torch.tensor([[NAN if x is None else x for x in case[name] * case["repeat"]]])
            for name in ("logp_old", "logp_rollout", "mask")
        )
        found, _ = rollout_corr_helper.compute_rollout_rejection_mask(
            old - rollout, mask, "mirror_pop", case["delta"]
        )
        expected = mask if case["kept"] else torch.zeros_like(mask)
        assert torch.equal(found, expected), case["name"]
    # The stock options are as they were: the signed mean keeps what MirrorPop rejects.
    case = cases("mirror_pop")[0]
    ratio = torch.tensor([case["logp_old"] * case["repeat"]]) - torch.tensor(
        [case["logp_rollout"] * case["repeat"]]
    )
    stock, _ = rollout_corr_helper.compute_rollout_rejection_mask(
        ratio, torch.ones_like(ratio), "seq_mean_k1", "0.999_1.001"
    )
    assert stock.all()
    print("  MirrorPop: all golden sequences; seq_mean_k1 keeps the one with alternating signs")


# ---- Episodes and Buffered Dynamic Retry --------------------------------------------------------


class Server:
    """A substitute for vLLM or SGLang, which gives answers in order.

    "abort" is an aborted request.  An answer ends with the end token, or where its limit is.
    """

    def __init__(self, tokenizer: Any, *answers: str) -> None:
        self.tokenizer, self.answers = tokenizer, list(answers)
        self.prompts: list[str] = []

    async def generate(self, request_id: str, prompt_ids: Any, sampling_params: Any) -> TokenOutput:
        self.prompts.append(self.tokenizer.decode(prompt_ids))
        answer = self.answers.pop(0)
        if answer == "abort":
            return TokenOutput(token_ids=[], log_probs=[], stop_reason="aborted")
        ids = [*self.tokenizer.encode(answer), self.tokenizer.eos_token_id][:RESPONSE_LENGTH]
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), stop_reason="completed")


def config_of(**data: Any) -> Any:
    rollout = {
        "prompt_length": 200,
        "response_length": RESPONSE_LENGTH,
        "n": 2,
        "max_model_len": 1000,
    }
    values = {
        "actor_rollout_ref": {"rollout": rollout, "model": {}},
        "data": {"apply_chat_template_kwargs": {}, **data},
    }
    return OmegaConf.create(values)


def worker_of(config: Any, server: Server) -> Any:
    """verl's agent loop worker without Ray and without a reward model."""
    worker = object.__new__(agent_loop.AgentLoopWorker)
    worker.__dict__.update(
        config=config,
        rollout_config=config.actor_rollout_ref.rollout,
        llm_client=server,
        tokenizer=server.tokenizer,
        processor=None,
        hf_model_type=None,
        dataset_cls=verl_hooks.RetryDataset,
        tools=[],
        mm_processor_kwargs={},
        reward_loop_worker_handles=None,
        distillation_enabled=False,
    )
    return worker


async def run_rows(worker: Any, table: list[dict[str, Any]], validate: bool = False) -> Any:
    trajectory = {"step": 1, "sample_index": 0, "rollout_n": 0, "validate": validate}
    outputs = [
        await worker._run_agent_loop({}, trajectory, agent_name="musacoder", trace=False, **row)
        for row in table
    ]
    return worker._postprocess(outputs, input_non_tensor_batch={}, validate=validate)


def row_of(split: str = "train", uid: str = "g", **extra: Any) -> dict[str, Any]:
    return {
        "raw_prompt": [{"role": "user", "content": "task\n"}],
        "reward_model": {"ground_truth": TASK},
        "extra_info": {"split": split, verl_hooks.ITEM: 0, **extra},
        "uid": uid,
    }


def check_episodes(tokenizer: Any) -> None:
    def run(*answers: str, split: str = "train", **extra: Any) -> tuple[float, Any, Server]:
        server = Server(tokenizer, *answers)
        batch = asyncio.run(run_rows(worker_of(config_of(), server), [row_of(split, **extra)]))
        return float(batch.batch["rm_scores"].sum()), batch, server

    reward, batch, server = run("compile", "wrong", "pass")
    assert abs(reward + 0.5) < 1e-6, reward
    length = len("compile") + 1
    assert int(batch.batch["response_mask"].sum()) == length
    assert batch.batch["rollout_log_probs"][0, :length].tolist() == [-0.5] * length
    assert server.prompts[1] == (
        "<|user|>task\n<|end|><|assistant|>compile<|end|><|user|>It is compile.\n"
        "Write the whole answer again.\n<|end|><|assistant|>"
    ), server.prompts[1]
    reward, batch, server = run("wrong", "pass", split="test")
    assert reward == -0.25 and server.answers == ["pass"], reward
    for answers in (("abort",), ("compile", "abort"), ("infra",), ("compile", "infra")):
        reward, batch, _ = run(*answers)
        assert np.float32(reward) == UNSCORED and int(batch.batch["response_mask"].sum()) == 0
        assert batch.non_tensor_batch["scored"].tolist() == [0.0], answers
    # An answer of 39 letters has its end token within the limit.
    for length_of_answer, expected in ((RESPONSE_LENGTH, -1), (RESPONSE_LENGTH - 1, 1.2)):
        reward, _, _ = run("pass".ljust(length_of_answer), "compile", "compile")
        assert abs(reward - expected) < 1e-6, (length_of_answer, reward)
    reward, _, server = run("pass".ljust(99), "pass")
    assert abs(reward + 0.4) < 1e-6 and "was cut off after 40 tokens" in server.prompts[1], reward
    reward, _, _ = run("musa", dialect="musa")
    assert abs(reward - 1.2) < 1e-6, reward
    _, _, server = run("<think>Hm.</think>\ncompile", "pass")
    assert server.prompts[1].startswith("<|user|>task\n<|end|><|assistant|>compile<|end|>")
    reward, batch, _ = run("compile", "unsupported")
    assert np.float32(reward) == UNSUPPORTED and int(batch.batch["response_mask"].sum()) == length
    print("  episodes: PrimeEcho, evaluation, dialects, aborted, cut and unscored turns")


@contextlib.contextmanager
def data_of(folder: str, tokenizer: Any) -> Any:
    path = Path(folder, "train.jsonl")
    table = [
        {
            "prompt": [{"role": "user", "content": f"task {i}\n"}],
            "data_source": "musacoder/forge",
            "reward_model": {"style": "rule", "ground_truth": f"{TASK}# {i}\n"},
            "extra_info": {"split": "train", "index": i},
        }
        for i in range(6)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in table))
    test = Path(folder, "test.jsonl")
    test.write_text(path.read_text())
    config = config_of(
        train_files=str(path),
        val_files=str(test),
        train_batch_size=2,
        max_prompt_length=200,
        filter_overlong_prompts=False,
        cache_dir=folder,
    ).data
    environment = {"MUSACODER_BDR_FOLDER": str(Path(folder, "bdr")), "MUSACODER_BDR": "1"}
    with mock.patch.dict(os.environ, environment):
        yield config


def check_retries(tokenizer: Any) -> None:
    from torchdata.stateful_dataloader import StatefulDataLoader
    from verl.utils.dataset.rl_dataset import collate_fn

    with tempfile.TemporaryDirectory() as folder, data_of(folder, tokenizer) as config:

        def loader() -> Any:
            data = verl_hooks.RetryDataset(config.train_files, tokenizer, config)
            return StatefulDataLoader(data, batch_size=2, num_workers=0, collate_fn=collate_fn)

        def step(batch: Any, *answers: str) -> None:
            """One of verl's steps: both samples of both prompts answer once."""
            with mock.patch.dict(os.environ, MUSACODER_TURNS="1"):
                worker = worker_of(config_of(), Server(tokenizer, *answers))
                table = [
                    {
                        **{key: batch[key][i] for key in ("reward_model", "extra_info")},
                        "raw_prompt": batch["raw_prompt"][i],
                        "uid": f"{batch['extra_info'][i][verl_hooks.ITEM]} {id(batch)}",
                    }
                    for i in (0, 0, 1, 1)
                ]
                asyncio.run(run_rows(worker, table))

        def prompts(batch: Any) -> list[str]:
            return [messages[-1]["content"] for messages in batch["raw_prompt"]]

        first_loader = loader()
        batches = iter(first_loader)
        batch = next(batches)
        assert prompts(batch) == ["task 0\n", "task 1\n"]
        step(batch, "compile", "wrong", "compile", "pass")
        replay = next(batches)
        assert prompts(replay) == [
            "task 0\nAn answer that failed:\nwrong\nIt is wrong.\nWrite the whole answer again.\n",
            "task 3\n",
        ], prompts(replay)
        assert replay["extra_info"][0]["musacoder_replay"] is True
        assert replay["reward_model"][0]["ground_truth"] == f"{TASK}# 0\n"
        step(replay, "compile", "pass", "infra", "infra")
        state = first_loader.state_dict()
        third = prompts(next(batches))
        assert third == ["task 4\n", "task 5\n"], third  # The replay was solved.
        second_loader = loader()
        second_loader.load_state_dict(state)
        assert prompts(next(iter(second_loader))) == third
        val = verl_hooks.RetryDataset(config.val_files, tokenizer, config)
        assert val[0]["extra_info"]["split"] == "test" and len(val) == 6
    print(
        "  Buffered Dynamic Retry: replay, solved, checkpoint of the data loader, validation rows"
    )


def main() -> int:
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    print(f"verl {verl.__version__}")
    check_advantages()
    check_mirror_pop()
    check_steps()
    check_denominators()
    tokenizer = byte_tokenizer()
    with mock.patch.object(verl_hooks, "evaluate_async", hosts.judge):
        check_episodes(tokenizer)
        check_retries(tokenizer)
    print("verl: steps, advantages, MirrorPop, episodes and retries agree with the goldens")
    return 0


if __name__ == "__main__":
    sys.exit(main())
