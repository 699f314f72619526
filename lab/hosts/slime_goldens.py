#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped"
"""The golden files of src/rl through slime's own functions, on a CPU.

    python lab/hosts/slime_goldens.py CHECKOUT

Whole steps (step.json): slime's RolloutManager turns rewards into advantages and masks, then
slime's `loss_function` makes the loss and its gradient, with musacoder.slime's hooks loaded by
their paths.  The log-probabilities come from the golden file, in place of Megatron's forward pass;
SGLang is not imported.  Then slime's own rollout runs three times with filter, capture and replay,
with a stand-in for SGLang's server.  Needs what slime imports (torch, ray, transformers).

Differences by choice of slime's: a k3 above 10 is cut to 10 (`low_var_kl`; `k3` is not); there is
no floor for the spread; Dr.GRPO's division by a fixed length does not exist.  Token mean counts
tokens after `remove_sample`, and before rejection.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from host_goldens import TOLERANCE, cases, differs, rows


def slime_args(options: dict[str, Any]) -> types.SimpleNamespace:
    return types.SimpleNamespace(
        use_rollout_logprobs=False,
        use_opsm=False,
        advantage_estimator="grpo",
        eps_clip=options["eps_low"],
        eps_clip_high=options["eps_high"],
        eps_clip_c=None,
        get_mismatch_metrics=False,
        use_tis=options["mirror_pop"] is not None,
        custom_tis_function_path="musacoder.slime.mirror_pop",
        calculate_per_token_loss=options["mode"] == "token_mean",
        entropy_coef=0.0,
        use_kl_loss=options["beta"] > 0,
        kl_loss_coef=options["beta"],
        kl_loss_type="low_var_kl",
        use_unbiased_kl=False,
        loss_type="policy_loss",
        recompute_loss_function=False,
        allgather_cp=False,
        rollout_top_p=1.0,
        custom_reward_post_process_path="musacoder.slime.post_process_rewards",
        reward_key=None,
    )


def train_data(args: Any, batch: dict[str, Any]) -> dict[str, Any]:
    """The data that slime's RolloutManager passes to the trainer."""
    from slime.ray.rollout import RolloutManager
    from slime.utils.misc import load_function
    from slime.utils.types import Sample

    masks, samples, group = rows(batch, "mask"), [], 0
    rollout = rows(batch, "logp_rollout")
    for i, reward in enumerate(batch["rewards"]):
        group += i in batch["group_ends"]
        sample = Sample(group_index=group, index=i, reward=reward or 0.0)
        sample.remove_sample = reward is None
        sample.response_length = len(masks[i])
        sample.tokens = [0] * (1 + len(masks[i]))
        sample.loss_mask = [int(value) for value in masks[i]]
        sample.rollout_log_probs = rollout[i]
        samples.append(sample)
    manager = types.SimpleNamespace(
        args=args,
        custom_reward_post_process_func=load_function(args.custom_reward_post_process_path),
        custom_convert_samples_to_train_data_func=None,
    )
    cls = RolloutManager.__ray_metadata__.modified_class
    manager._post_process_rewards = lambda s: cls._post_process_rewards(manager, s)
    data: dict[str, Any] = cls._convert_samples_to_train_data(manager, samples)
    return data


def run_step(case: dict[str, Any]) -> tuple[float, list[float], list[bool]]:
    """Loss, gradient of each log-probability, and which sequences have a mask at the start."""
    from slime.backends.megatron_utils import loss

    args, batch = slime_args(case["options"]), copy.deepcopy(case["batch"])
    data = train_data(args, batch)
    new = [torch.tensor(row, requires_grad=True) for row in rows(batch, "logp_new")]
    # A masked token has a real value in slime, never NaN.
    finite = [torch.where(torch.isnan(row), torch.zeros_like(row), row) for row in new]
    masks = [torch.tensor(mask, dtype=torch.float32) for mask in data["loss_masks"]]

    def tensors(name: str) -> list[torch.Tensor]:
        return [torch.tensor(row).nan_to_num() for row in rows(batch, name)]

    one: dict[str, Any] = {
        "advantages": [torch.full_like(m, r) for m, r in zip(masks, data["rewards"])],
        "log_probs": tensors("logp_old"),
        "rollout_log_probs": tensors("logp_rollout"),
        "unconcat_tokens": [],
        "response_lengths": data["response_lengths"],
        "total_lengths": [len(tokens) for tokens in data["tokens"]],
        "loss_masks": masks,
        "rollout_mask_sums": torch.tensor(data["rollout_mask_sums"], dtype=torch.float32),
    }
    if args.use_kl_loss:
        one["ref_log_probs"] = tensors("logp_ref")
    forward = {"log_probs": finite, "entropy": [torch.zeros_like(row) for row in finite]}
    with mock.patch.object(loss, "get_log_probs_and_entropy", lambda *_, **__: (None, forward)):
        total, normalizer, _ = loss.loss_function(args, one, 1, len(masks), torch.zeros(1, 1, 1))
    if args.calculate_per_token_loss:
        total = total / normalizer
    total.backward()
    gradient = [value for row in new for value in (row.grad if row.grad is not None else row * 0)]
    return float(total.detach()), [float(g) for g in gradient], [bool(m.sum()) for m in masks]


def token_mean_share(case: dict[str, Any]) -> float:
    """Trained tokens of all sequences over those of sequences that slime did not remove."""
    masks, counts = rows(case["batch"], "mask"), [0.0, 0.0]
    scored = [reward is not None for reward in case["batch"]["rewards"]]
    begin = 0
    for end in case["batch"]["group_ends"]:
        known = sum(scored[begin:end])
        is_dropped = known < 2 or 2 * known < end - begin
        for i in range(begin, end):
            counts[0] += sum(masks[i])
            counts[1] += max(1.0, sum(masks[i]) * (scored[i] and not is_dropped))
        begin = end
    return counts[0] / counts[1]


def check_steps() -> int:
    num_checked = 0
    for case in cases("step"):
        options = case["options"]
        if options["mode"] == "dr_grpo" or options["std_floor"]:
            print(f"  step {case['name']!r}: left out (slime has no such option)")
            continue
        loss, gradient, _ = run_step(case)
        scale = token_mean_share(case) if options["mode"] == "token_mean" else 1.0
        error = differs([loss, *gradient], [scale * x for x in [case["loss"], *case["gradient"]]])
        note = f", times {scale:.4f} (tokens of removed samples are not counted)"
        print(f"  step {case['name']!r}: difference {error:.1e}{note if scale != 1 else ''}")
        assert error < TOLERANCE, case["name"]
        num_checked += 1
    return num_checked


def check_objective() -> None:
    from slime.utils.ppo_utils import compute_approx_kl, compute_policy_loss

    worst = 0.0
    for case in cases("objective"):
        if abs(case["log_ratio"]) > 20:
            continue  # src/rl holds the log-ratio to 20; slime does not.
        ratio = torch.tensor([-case["log_ratio"]], dtype=torch.float64)
        loss, _ = compute_policy_loss(
            ratio, torch.tensor([case["A"]]), case["eps_low"], case["eps_high"]
        )
        worst = max(worst, differs([float(loss)], [case["loss"]]))
    print(f"  clipped objective: difference {worst:.1e}")
    assert worst < TOLERANCE
    worst = 0.0
    for case in cases("kl"):
        new, ref = torch.tensor([0.0]), torch.tensor([case["log_u"]])
        found = float(compute_approx_kl(new, ref, "low_var_kl"))
        if abs(case["log_u"]) <= 20:
            worst = max(worst, differs([found], [min(case["k3"], 10.0)]))
    print(f"  k3, cut at 10 as slime does: difference {worst:.1e}")
    assert worst < TOLERANCE


def check_context_parallel() -> None:
    """Two ranks, each with its part of every sequence, decide as one rank with the whole."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(  # type: ignore[attr-defined,no-untyped-call]
            _rank, (os.environ["MUSACODER_SLIME"], folder), 2
        )
        parts = [torch.load(Path(folder, f"{rank}.pt")) for rank in (0, 1)]
    kept = [[bool(mask.sum()) for mask in part] for part in parts]
    print(f"  MirrorPop under context parallelism: ranks keep {kept[0]} and {kept[1]}")
    assert kept == [[True, False, True]] * 2


def _rank(rank: int, checkout: str, folder: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29739", MUSACODER_SLIME=checkout)
    import hosts

    hosts.prepare_slime()
    from megatron.core import mpu

    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    mpu.get_context_parallel_world_size = lambda: 2
    mpu.get_context_parallel_rank = lambda: rank
    mpu.get_context_parallel_group = lambda: torch.distributed.group.WORLD
    from slime.backends.megatron_utils.cp_utils import slice_log_prob_with_cp

    from musacoder import slime

    # The second sequence drifts in the half that rank 0 does not see, and both ranks reject it.
    lengths, prompts = [16, 16, 5], [4, 4, 3]
    olds = [torch.full((n,), -1.0) for n in lengths]
    rollouts = [old.clone() for old in olds]
    rollouts[1][7:9] += 0.9
    totals = [n + p for n, p in zip(lengths, prompts)]
    parts = [
        [slice_log_prob_with_cp(x, t, n) for x, t, n in zip(side, totals, lengths)]
        for side in (olds, rollouts)
    ]
    _, masks, _ = slime.mirror_pop(
        types.SimpleNamespace(),
        pg_loss=torch.zeros(sum(len(part) for part in parts[0])),
        train_log_probs=parts[0],
        rollout_log_probs=parts[1],
        loss_masks=[torch.ones(n) for n in lengths],
        total_lengths=totals,
        response_lengths=lengths,
    )
    torch.save(masks, Path(folder, f"{rank}.pt"))
    torch.distributed.destroy_process_group()


def loop_args(folder: str) -> types.SimpleNamespace:
    """The arguments that slime's rollout of version 624b824a reads."""
    return types.SimpleNamespace(
        hf_checkpoint="stand-in",
        sglang_router_ip="router",
        sglang_router_port=1,
        sglang_server_concurrency=64,
        sglang_dp_size=1,
        rollout_num_gpus=1,
        rollout_num_gpus_per_engine=1,
        rollout_temperature=0.9,
        rollout_top_p=0.95,
        rollout_top_k=-1,
        rollout_max_response_len=40,
        rollout_max_prompt_len=1000,
        rollout_max_context_len=2000,
        rollout_stop=None,
        rollout_stop_token_ids=None,
        rollout_skip_special_tokens=False,
        rollout_global_dataset=True,
        rollout_seed=3,
        rollout_shuffle=False,
        rollout_batch_size=2,
        over_sampling_batch_size=3,
        n_samples_per_prompt=2,
        partial_rollout=True,
        mask_offpolicy_in_partial_rollout=False,
        use_rollout_routing_replay=False,
        group_rm=False,
        ci_test=False,
        reward_key=None,
        buffer_filter_path=None,
        rollout_sample_filter_path=None,
        rollout_sample_hook_path=None,
        custom_generate_function_path="musacoder.slime.generate",
        dynamic_sampling_filter_path="musacoder.slime.check_spread",
        rollout_all_samples_process_path="musacoder.slime_data.capture",
        custom_rm_path=None,
        prompt_data=str(Path(folder, "rl.jsonl")),
        input_key="prompt",
        label_key="label",
        metadata_key="metadata",
        multimodal_keys=None,
        tool_key=None,
        apply_chat_template=True,
        apply_chat_template_kwargs={},
        dump_details=None,
        save=folder,
        load=folder,
        musacoder_turns=2,
        musacoder_bdr=1.0,
    )


class ScriptedEngine:
    """Even tasks have spread, odd ones fail; replays pass once; later turns never compile."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}
        self.num_replays = 0

    async def post(self, url: str, body: dict[str, Any], **_: Any) -> dict[str, Any]:
        import hosts

        prompt = "".join(map(chr, body["input_ids"]))
        number = self.seen[prompt] = self.seen.get(prompt, -1) + 1
        is_replay = "An answer that failed" in prompt.partition("[assistant]")[0]
        self.num_replays += is_replay
        if prompt.count("[assistant]") > 1:
            answer = "compile, later"
        elif is_replay or int(prompt.partition("task ")[2][0]) % 2 == 0:
            answer = ["pass", "wrong"][number % 2]
        else:
            answer = "compile"
        reply: dict[str, Any] = await hosts.Engine(answer).post(url, body)
        return reply


def check_loop() -> None:
    """Two of slime's own rollouts, with its filter, capture, replay and dump, and then RFT."""
    import hosts
    from slime.observability.rollout_data_utils import save_debug_rollout_data
    from slime.rollout import sglang_rollout

    from musacoder import rft, slime, slime_data

    async def no_workers(url: str) -> dict[str, Any]:
        return {"workers": []}

    async def no_servers(urls: list[str]) -> None:
        del urls

    engine = ScriptedEngine()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        table = [
            {
                "id": f"t{i}",
                "prompt": [{"role": "user", "content": f"task {i}\n"}],
                "label": f"code of {i}",
            }
            for i in range(8)
        ]
        Path(folder, "rl.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
        for name, value in {
            "post": engine.post,
            "get": no_workers,
            "abort_servers_until_idle": no_servers,
            "load_tokenizer": lambda *_, **__: hosts.Tokenizer(),
            "load_processor": lambda *_, **__: None,
            "get_rollout_num_engines": lambda args: 1,
        }.items():
            stack.enter_context(mock.patch.object(sglang_rollout, name, value))
        stack.enter_context(mock.patch.object(slime, "evaluate_async", hosts.judge))
        args = loop_args(folder)
        source = slime_data.RetryDataSource(args)
        groups, replays = [], []
        for rollout_id in range(3):
            output = sglang_rollout.generate_rollout(args, rollout_id, source)
            groups += output.samples
            replays += [g for g in output.samples if slime_data.REPLAY in g[0].metadata]
            flat = [sample for group in output.samples for sample in group]
            template = str(Path(folder, "rollout_{rollout_id}.pt"))
            save_debug_rollout_data(template, flat, rollout_id=rollout_id, evaluation=False)
        assert all(len({sample.reward for sample in group}) == 2 for group in groups), groups
        assert all(len(s.rollout_top_p_token_offsets) == s.response_length + 1 for s in flat)
        assert replays and engine.num_replays > 0
        solved = {group[0].label for group in replays}
        left = {failure.task for failure in source.retries.failures}
        assert not solved & left, (solved, left)
        episodes = [e for p in sorted(Path(folder).glob("*.pt")) for e in rft.first_turns(p)]
        rows = rft.select(episodes, rft.read_prompts(Path(args.prompt_data)), 4, hosts.ENDED)
        assert rows and all(row["messages"][-1]["content"] == "pass" for row in rows), rows
    print(
        f"  slime's rollout: {len(groups)} groups kept, {len(replays)} of them solved replays, "
        f"{len(left)} failures left to replay, {len(rows)} rows for RFT"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    os.environ["MUSACODER_SLIME"] = str(parser.parse_args().checkout.resolve())
    torch.compile = lambda *_, **__: lambda function: function  # type: ignore[assignment]
    import hosts

    hosts.prepare_slime()
    hosts.prepare_engine_imports()
    print("slime")
    num_steps = check_steps()
    check_objective()
    check_context_parallel()
    check_loop()
    print(f"slime: {num_steps} whole steps, objective, KL and MirrorPop agree with the goldens")
    return 0


if __name__ == "__main__":
    sys.exit(main())
