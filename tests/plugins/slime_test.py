# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped"
"""The hooks for slime.  Without a checkout of slime they run against the stand-ins of hosts.py."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import types
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "python"), str(Path(__file__).parent)]

import hosts  # noqa: E402

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("needs PyTorch") from error

hosts.prepare_slime()

from slime.utils.types import Sample  # noqa: E402

from musacoder import rules, slime, slime_data  # noqa: E402

TASK = "class Model:\n    pass\n"
PROMPT = f"[user]task\n{hosts.ENDED}[assistant]"
PARAMS = {"max_new_tokens": 20, "temperature": 0.9}


def arguments(**changes: Any) -> types.SimpleNamespace:
    values: dict[str, Any] = {
        "sglang_router_ip": "router",
        "sglang_router_port": 1,
        "rollout_max_context_len": None,
        "rollout_max_prompt_len": None,
        "rollout_global_dataset": True,
        "rollout_seed": 3,
        "rollout_shuffle": False,
        "n_samples_per_prompt": 2,
        "hf_checkpoint": "stand-in",
        "reward_key": None,
        "ci_test": False,
        "use_rollout_routing_replay": False,
        "apply_chat_template": False,
        "apply_chat_template_kwargs": {},
        "dump_details": None,
        "multimodal_keys": None,
        "input_key": "prompt",
        "label_key": "label",
        "metadata_key": "metadata",
        "tool_key": None,
        "buffer_filter_path": None,
        "stand_in_prompts": [
            (f"[user]task {i}\n{hosts.ENDED}[assistant]", str(i)) for i in range(9)
        ],
        "prompt_data": None,
        "save": None,
        "load": None,
        **changes,
    }
    return types.SimpleNamespace(**values)


class Episodes(unittest.TestCase):
    def setUp(self) -> None:
        patch = mock.patch.object(slime, "evaluate_async", hosts.judge)
        patch.start()
        self.addCleanup(patch.stop)

    def generate(self, *answers: str, **options: Any) -> tuple[Any, hosts.Engine]:
        engine = hosts.Engine(*answers)
        hosts.use_engine(engine, options.pop("is_aborted", False))
        sample = options.pop("sample", None) or Sample(prompt=PROMPT, label=TASK)
        evaluation = options.pop("evaluation", False)
        params = {**PARAMS, **options.pop("params", {})}
        call = slime.generate(arguments(**options), sample, params, evaluation=evaluation)
        return asyncio.run(call), engine

    def test_the_reward_is_prime_echo_and_the_first_turn_alone_is_trained(self) -> None:
        sample, engine = self.generate("compile", "wrong", "pass")
        self.assertAlmostEqual(sample.reward, -0.75 + 0.25)
        self.assertEqual(sample.response, "compile" + hosts.ENDED)
        self.assertEqual(sample.response_length, len("compile" + hosts.ENDED))
        self.assertEqual(engine.answers, [])
        self.assertEqual(
            engine.prompts[1],
            PROMPT + f"compile{hosts.ENDED}[user]It is compile.\nWrite the whole answer again.\n"
            f"{hosts.ENDED}[assistant]",
        )
        self.assertTrue(engine.prompts[2].startswith(engine.prompts[1] + "wrong"))

    def test_an_episode_ends_at_a_pass(self) -> None:
        sample, engine = self.generate("pass", "never asked")
        self.assertAlmostEqual(sample.reward, 1.2)
        self.assertEqual(engine.answers, ["never asked"])

    def test_an_evaluation_gets_the_score_of_one_turn(self) -> None:
        sample, engine = self.generate("wrong", "pass", evaluation=True)
        self.assertEqual(sample.reward, -0.25)
        self.assertEqual(engine.answers, ["pass"])
        fast, _ = self.generate("fast", evaluation=True)
        self.assertEqual(fast.reward, 1.3)

    def test_one_turn_has_its_score_and_no_bonus(self) -> None:
        sample, _ = self.generate("pass", musacoder_turns=1)
        self.assertEqual(sample.reward, 1.0)

    def test_slime_passes_evaluation_by_name(self) -> None:
        import inspect

        self.assertIn("evaluation", inspect.signature(slime.generate).parameters)

    def test_an_aborted_first_turn_is_no_answer(self) -> None:
        sample, _ = self.generate("abort")
        self.assertEqual(sample.status, Sample.Status.ABORTED)
        self.assertIsNone(sample.reward)

    def test_an_aborted_later_turn_is_no_answer_and_the_first_turn_is_kept(self) -> None:
        sample, _ = self.generate("compile", "abort")
        self.assertEqual(sample.status, Sample.Status.ABORTED)
        self.assertIsNone(sample.reward)
        tokens = list(sample.tokens)
        # The sample is issued again, and only the later turns are generated.
        again, engine = self.generate("pass", sample=sample)
        self.assertEqual(again.status, Sample.Status.COMPLETED)
        self.assertEqual(again.tokens, tokens)
        self.assertAlmostEqual(again.reward, -0.75 + 0.25 + 0.1)
        self.assertEqual(len(engine.prompts), 1)

    def test_a_cut_answer_fails_whatever_its_beginning_holds(self) -> None:
        sample, engine = self.generate("pass, and on and on…", "pass")
        self.assertAlmostEqual(sample.reward, -0.75 + 0.25 + 0.1)
        self.assertEqual(sample.metadata[slime.KEY]["outcomes"], ["extraction", "pass"])
        self.assertIn("was cut off after 20 tokens", engine.prompts[1])
        sample, _ = self.generate("compile", "pass…", musacoder_turns=2)
        self.assertEqual(sample.reward, -1.0)
        sample, _ = self.generate("pass…", evaluation=True)
        self.assertEqual(sample.reward, -1.0)
        sample.status, sample.response = Sample.Status.TRUNCATED, "pass…"
        self.assertEqual(asyncio.run(slime.reward(arguments(), sample)), -1.0)

    def test_an_answer_is_judged_in_the_dialect_of_its_row(self) -> None:
        row = Sample(prompt=PROMPT, label=TASK, metadata={"dialect": "musa"})
        sample, _ = self.generate("compile", "musa", sample=row)
        self.assertAlmostEqual(sample.reward, -0.75 + 0.25 + 0.1)
        row.response = "musa"
        self.assertEqual(asyncio.run(slime.reward(arguments(), row)), 1.0)
        sample, _ = self.generate("musa", musacoder_turns=1)
        self.assertEqual(sample.reward, -1.0)

    def test_a_later_turn_does_not_see_the_reasoning(self) -> None:
        _, engine = self.generate("<think>\nHm.\n</think>\n\ncompile", "pass")
        self.assertTrue(engine.prompts[1].startswith(PROMPT + f"compile{hosts.ENDED}[user]"))

    def test_a_prompt_that_begins_the_reasoning_does_not_in_a_later_turn(self) -> None:
        class Thinking(hosts.Tokenizer):
            def apply_chat_template(self, *arguments: Any, **options: Any) -> str:
                return super().apply_chat_template(*arguments, **options) + "<think>\n"

        prompt = slime.next_prompt(
            Thinking(), PROMPT + "<think>\n", f"Hm.</think>\ncode{hosts.ENDED}", "No.\n"
        )
        self.assertTrue(prompt.startswith(PROMPT + f"code{hosts.ENDED}[user]No."), prompt)
        self.assertTrue(prompt.endswith("[assistant]<think>\n"), prompt)

    def test_no_turn_begins_once_slime_aborts(self) -> None:
        sample, engine = self.generate("compile", "pass", is_aborted=True)
        self.assertEqual(sample.status, Sample.Status.ABORTED)
        self.assertEqual(engine.answers, ["pass"])

    def test_what_cannot_be_judged_is_removed(self) -> None:
        for answers in (("infra",), ("compile", "infra")):
            sample, _ = self.generate(*answers)
            self.assertTrue(sample.remove_sample)
            self.assertEqual(sample.reward, 0.0)

    def test_a_turn_without_room_is_not_taken(self) -> None:
        limit = len(PROMPT) + len("compile") + 20
        sample, engine = self.generate("compile", "pass", rollout_max_context_len=limit)
        self.assertEqual(engine.answers, ["pass"])
        self.assertEqual(sample.reward, -1.0)

    def test_top_p_keeps_the_kept_tokens_of_the_first_turn(self) -> None:
        params = {"custom_params": {"return_top_p_token_ids": True}}
        sample, engine = self.generate("compile", "pass", params=params)
        self.assertEqual(len(sample.rollout_top_p_token_offsets), sample.response_length + 1)
        self.assertNotIn("custom_params", engine.params[1])

    def test_the_template_options_hold_in_later_turns(self) -> None:
        options = {"enable_thinking": False}
        _, engine = self.generate("compile", "pass", apply_chat_template_kwargs=options)
        self.assertTrue(engine.prompts[1].endswith("[assistant](no thinking)"))

    def test_timing_noise_earns_nothing_in_training(self) -> None:
        async def noisy(task: Any, answer: str, options: Any = None) -> Any:
            judged = await hosts.judge(task, answer)
            return type(judged)(1.011, "pass", "", 0.0, judged.verdict)

        with mock.patch.object(slime, "evaluate_async", noisy):
            sample, _ = self.generate("pass")
            evaluated, _ = self.generate("pass", evaluation=True)
        self.assertAlmostEqual(sample.reward, 1.2)
        self.assertEqual(evaluated.reward, 1.011)


def scored(value: float | None, group: int = 0) -> Any:
    sample = Sample(prompt=PROMPT, label=TASK, group_index=group)
    sample.reward, sample.remove_sample = value or 0.0, value is None
    return sample


class Advantages(unittest.TestCase):
    def test_are_those_of_the_golden_groups(self) -> None:
        path = Path(__file__).parents[2] / "src/rl/golden/advantage.json"
        for case in json.loads(path.read_text())["cases"]:
            if case["scale"] != "std" or case["std_floor"] or case["eps"] != 1e-6:
                continue
            samples = [scored(value) for value in case["rewards"]]
            _, found = slime.post_process_rewards(arguments(), samples)
            for sample, one, expected in zip(samples, found, case["advantage"], strict=True):
                self.assertEqual(sample.remove_sample, expected is None)
                self.assertAlmostEqual(one, expected or 0.0, 6)

    def test_an_aborted_sample_is_left_out(self) -> None:
        samples = [scored(1.0), scored(-1.0), scored(1.0)]
        samples[2].reward = None
        raw, found = slime.post_process_rewards(arguments(), samples)
        self.assertEqual(raw[2], 0.0)
        self.assertAlmostEqual(found[0], -found[1])
        self.assertTrue(samples[2].remove_sample)

    def test_an_unsupported_sample_has_the_least_reward_of_its_group(self) -> None:
        samples = [scored(1.2), scored(-1.0), scored(None), scored(None)]
        samples[2].metadata = {slime.KEY: {"outcomes": ["compile", "unsupported"]}}
        samples[3].metadata = {slime.KEY: {"outcomes": ["infra"]}}
        self.assertTrue(slime.check_spread(arguments(), samples).keep)
        raw, found = slime.post_process_rewards(arguments(), samples)
        self.assertEqual(raw, [1.2, -1.0, -1.0, 0.0])
        self.assertEqual(found[1], found[2])
        self.assertLess(found[2], 0)
        self.assertEqual([s.remove_sample for s in samples], [False, False, False, True])

    def test_the_filter_skips_removed_samples(self) -> None:
        def keeps(*values: float | None) -> Any:
            return slime.check_spread(arguments(), [scored(value) for value in values])

        self.assertTrue(keeps(1.2, -1.0, None).keep)
        # Removed samples have the reward 0, which slime's own filter takes for spread.
        self.assertFalse(keeps(-1.0, -1.0, None).keep)
        self.assertEqual(keeps(-1.0, -1.0, None).reason, "no_spread")
        self.assertEqual(keeps(-1.0, None, None).reason, "too_few_scored")


class MirrorPop(unittest.TestCase):
    def test_golden_sequences(self) -> None:
        path = Path(__file__).parents[2] / "src/rl/golden/mirror_pop.json"
        for case in json.loads(path.read_text())["cases"]:
            old, rollout, mask = (
                torch.tensor(
                    [float("nan") if x is None else x for x in case[name] * case["repeat"]]
                )
                for name in ("logp_old", "logp_rollout", "mask")
            )
            loss = torch.arange(len(old), dtype=torch.float32)
            loss_after, masks, metrics = slime.mirror_pop(
                arguments(musacoder_delta=case["delta"]),
                pg_loss=loss,
                train_log_probs=[old],
                rollout_log_probs=[rollout],
                loss_masks=[mask],
                total_lengths=[len(old) + 5],
                response_lengths=[len(old)],
            )
            expected = mask if case["kept"] else torch.zeros_like(mask)
            self.assertTrue(torch.equal(masks[0], expected), case["name"])
            self.assertTrue(torch.equal(loss_after, loss))
            self.assertEqual(metrics["mirror_pop_drift"].shape, loss.shape)


class Retries(unittest.TestCase):
    def source(self, folder: str | None = None, **changes: Any) -> Any:
        values = {"musacoder_bdr": 1.0, "save": folder, "load": folder, **changes}
        if hosts.IS_REAL:
            values["prompt_data"] = self.data_file()
        return slime_data.RetryDataSource(arguments(**values))

    def data_file(self) -> str:
        folder = tempfile.mkdtemp()
        path = Path(folder, "data.jsonl")
        rows = [{"prompt": p, "label": t} for p, t in arguments().stand_in_prompts]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    def answered(self, group: list[Any], *answers: str) -> list[Any]:
        for sample, answer in zip(group, answers, strict=True):
            judged = asyncio.run(hosts.judge(sample.label, answer))
            sample.reward = slime._settle(sample, [(answer + hosts.ENDED, judged)], judged.reward)
            sample.status = Sample.Status.COMPLETED
        return group

    def test_a_failed_group_comes_back_with_its_best_answer(self) -> None:
        source = self.source()
        groups = source.get_samples(2)
        self.answered(groups[0], "compile, long", "wrong")
        self.answered(groups[1], "compile", "pass")
        # The hook gets the bound method, not the data source.
        slime_data.capture(source.args, groups, source.get_samples)
        replay, fresh = source.get_samples(2)
        self.assertEqual([len(replay), len(fresh)], [2, 2])
        self.assertEqual(replay[0].label, "0")
        self.assertEqual(
            replay[0].prompt,
            "[user]task 0\nAn answer that failed:\nwrong\nIt is wrong.\n"
            f"Write the whole answer again.\n{hosts.ENDED}[assistant]",
        )
        # A replay takes no prompt of the data set's order, and numbers go on.
        self.assertEqual(fresh[0].label, "2")
        indices = [sample.index for group in (*groups, replay, fresh) for sample in group]
        self.assertEqual(len(set(indices)), 8)
        self.assertEqual(len({g[0].group_index for g in (*groups, replay, fresh)}), 4)

    def test_a_replay_that_fails_again_is_no_nested_prompt(self) -> None:
        source = self.source()
        slime_data.capture(
            None, [self.answered(source.get_samples(1)[0], "compile", "compile")], source
        )
        replay = source.get_samples(1)[0]
        slime_data.capture(None, [self.answered(replay, "wrong, again", "compile")], source)
        second = source.get_samples(1)[0]
        self.assertEqual(second[0].prompt.count("An answer that failed"), 1)
        self.assertIn("wrong, again", second[0].prompt)

    def test_a_replay_shows_the_code_and_not_the_reasoning(self) -> None:
        source = self.source(rollout_max_prompt_len=200)
        code = "```python\nclass ModelNew: ...\n```\n"
        answer = f"<think>\n{'long ' * 99}</think>\n{code}"
        groups = source.get_samples(1)
        slime_data.capture(None, [self.answered(groups[0], answer, answer)], source)
        replay = source.get_samples(1)[0]
        self.assertEqual(
            replay[0].prompt,
            f"[user]task 0\nAn answer that failed:\n{code}\nIt is compile.\n"
            f"Write the whole answer again.\n{hosts.ENDED}[assistant]",
        )

    def test_a_fresh_prompt_that_solves_its_task_takes_it_out_of_the_buffer(self) -> None:
        source = self.source(musacoder_bdr=0.0)
        group = source.get_samples(1)[0]
        again = [Sample(prompt=s.prompt, label=s.label, group_index=7) for s in group]
        slime_data.capture(None, [self.answered(group, "compile", "compile")], source)
        self.assertEqual(len(source.retries), 1)
        slime_data.capture(None, [self.answered(again, "compile", "pass")], source)
        self.assertEqual(len(source.retries), 0)

    def test_a_task_has_an_item_in_each_dialect(self) -> None:
        source = self.source()
        cuda, musa = source.get_samples(2)
        for sample in (*cuda, *musa):
            sample.label = TASK
            sample.metadata = {"dialect": "cuda" if sample in cuda else "musa"}
        self.answered(cuda, "compile", "pass")
        self.answered(musa, "compile", "compile")
        slime_data.capture(None, [musa, cuda], source)
        replay = source.get_samples(1)[0][0]
        self.assertEqual((replay.label, replay.metadata["dialect"]), (TASK, "musa"))

    def test_replays_of_groups_that_slime_dropped_are_given_back(self) -> None:
        source = self.source(musacoder_bdr_replays=1)
        failed = self.answered(source.get_samples(1)[0], "compile", "compile")
        slime_data.capture(None, [failed], source)
        replay = source.get_samples(1)[0]  # Sampled beyond the batch; slime aborts it.
        self.assertEqual(len(source.retries), 0)
        slime_data.capture(None, [], source)
        again = source.get_samples(1)[0]
        self.assertEqual(again[0].prompt, replay[0].prompt)
        slime_data.capture(None, [again], source)  # Aborted before it had a verdict.
        again = source.get_samples(1)[0]
        self.assertEqual(again[0].prompt, replay[0].prompt)
        # The group is answered now, so its replay is spent.
        slime_data.capture(None, [self.answered(again, "compile", "compile")], source)
        self.assertNotIn("An answer that failed", source.get_samples(1)[0][0].prompt)

    def test_replays_of_groups_that_slime_issues_again_are_not_drawn_anew(self) -> None:
        source = self.source(musacoder_bdr_replays=1)
        failed = self.answered(source.get_samples(1)[0], "compile", "compile")
        slime_data.capture(None, [failed], source)
        replay = source.get_samples(1)[0]
        slime_data.capture(None, [], source)
        source.add_samples([replay])
        issued, fresh = source.get_samples(2)
        self.assertIs(issued, replay)
        self.assertNotIn("An answer that failed", fresh[0].prompt)

    def test_a_solved_replay_leaves_the_buffer(self) -> None:
        source = self.source()
        slime_data.capture(
            None, [self.answered(source.get_samples(1)[0], "compile", "compile")], source
        )
        replay = source.get_samples(1)[0]
        self.assertEqual(len(source.retries), 1)
        slime_data.capture(None, [self.answered(replay, "compile", "pass")], source)
        self.assertEqual(len(source.retries), 0)

    def test_groups_that_say_nothing_stay_out(self) -> None:
        source = self.source()
        unjudged, infra = source.get_samples(2)
        slime_data.capture(None, [unjudged, self.answered(infra, "infra", "infra")], source)
        self.assertEqual(len(source.retries), 0)

    def test_a_replay_that_would_not_fit_is_not_kept(self) -> None:
        source = self.source(rollout_max_prompt_len=60)
        slime_data.capture(
            None, [self.answered(source.get_samples(1)[0], "wrong" * 9, "wrong" * 9)], source
        )
        self.assertEqual(len(source.retries), 0)

    def test_aborted_groups_come_back_first(self) -> None:
        source = self.source()
        group = source.get_samples(1)[0]
        source.add_samples([group])
        self.assertIs(source.get_samples(2)[0], group)

    def test_a_resumed_run_draws_what_an_unbroken_one_draws(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source = self.source(folder, musacoder_bdr=0.5)
            groups = source.get_samples(4)
            for group in groups:
                self.answered(group, "compile", "wrong")
            slime_data.capture(None, groups, source)
            source.get_samples(1)
            source.add_samples([groups[0]])
            source.save(7)
            resumed = self.source(folder, musacoder_bdr=0.5)
            resumed.load(7)
            if not hosts.IS_REAL:
                resumed.sample_offset = source.sample_offset
            for _ in range(3):
                self.assertEqual(
                    [group[0].prompt for group in source.get_samples(3)],
                    [group[0].prompt for group in resumed.get_samples(3)],
                )

    def test_fully_asynchronous_rollouts_capture_where_rewards_are_processed(self) -> None:
        source = self.source()
        group = self.answered(source.get_samples(1)[0], "compile", "wrong")
        raw, found = slime_data.post_process_and_capture(source.args, group)
        self.assertEqual(raw, [-1.0, -0.25])
        self.assertAlmostEqual(found[0], -found[1])
        self.assertEqual(len(source.retries), 1)

    def test_a_prompt_of_messages_is_kept_as_messages(self) -> None:
        prompt = [{"role": "system", "content": "s"}, {"role": "user", "content": "task\n"}]
        found = slime.replay_prompt(hosts.Tokenizer(), prompt, "code" + hosts.ENDED, "Why.\n")
        self.assertEqual(
            found,
            [
                prompt[0],
                {"role": "user", "content": "task\n" + rules.retry_request("code", "Why.\n")},
            ],
        )
        self.assertIsNone(slime.replay_prompt(hosts.Tokenizer(), "another template", "code", "Why"))


class Settings(unittest.TestCase):
    def test_the_arguments_come_before_the_environment(self) -> None:
        with mock.patch.dict(os.environ, {"MUSACODER_DELTA": "0.03"}):
            self.assertEqual(slime.setting(arguments(), "delta", 0.05), 0.03)
            self.assertEqual(slime.setting(arguments(musacoder_delta=0.1), "delta", 0.05), 0.1)


if __name__ == "__main__":
    unittest.main()
