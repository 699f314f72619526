# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped"
"""slime for the tests of its hooks: the real checkout at $MUSACODER_SLIME, or small stand-ins.

slime is not on PyPI, so continuous integration cannot import it.  Without a checkout the tests run
against the classes below, which have only the members that the hooks touch, written from slime's
interfaces at commit 624b824a.  lab/hosts/host_contracts.py runs them against slime itself.
The engine (SGLang) is a stand-in in both cases: `Engine` answers slime's HTTP requests.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import importlib.machinery
import os
import sys
import types
from pathlib import Path
from typing import Any

from musacoder import Judged

IS_REAL = bool(os.environ.get("MUSACODER_SLIME"))
ENDED = "<end>"


class Tokenizer:
    """One token a character, and a chat template in square brackets."""

    eos_token = ENDED

    def apply_chat_template(
        self,
        turns: list[dict[str, str]],
        tokenize: bool,
        add_generation_prompt: bool,
        **options: Any,
    ) -> str:
        think = "" if options.get("enable_thinking", True) else "(no thinking)"
        return "".join(f"[{t['role']}]{t['content']}{ENDED}" for t in turns) + "[assistant]" + think

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return [ord(letter) for letter in text]

    def __call__(self, texts: list[str], add_special_tokens: bool) -> dict[str, list[list[int]]]:
        return {"input_ids": [self.encode(text, False) for text in texts]}

    def save_pretrained(self, path: str) -> None:
        del path


class Engine:
    """Replies to POST /generate with the given answers in order.

    "abort" is an aborted one; one that ends in "…" reached its limit of tokens there.
    """

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.prompts: list[str] = []
        self.params: list[dict[str, Any]] = []

    async def post(self, url: str, body: dict[str, Any], **_: Any) -> dict[str, Any]:
        assert url.endswith("/generate")
        self.prompts.append("".join(map(chr, body["input_ids"])))
        self.params.append(body["sampling_params"])
        answer = self.answers.pop(0)
        finish = {"abort": "abort"}.get(answer, "length" if answer.endswith("…") else "stop")
        text = {"abort": "", "length": answer}.get(finish, answer + ENDED)
        meta: dict[str, Any] = {"finish_reason": {"type": finish}}
        meta["output_token_logprobs"] = [[-0.5, ord(letter)] for letter in text]
        if body["sampling_params"].get("custom_params", {}).get("return_top_p_token_ids"):
            meta["top_p_token_ids"] = [ord(letter) for letter in text]
            meta["top_p_token_offsets"] = list(range(len(text) + 1))
        return {"text": text, "meta_info": meta}


KINDS = {"pass": 1.0, "fast": 1.3, "wrong": -0.25, "infra": None, "unsupported": None}


async def judge(task: Any, answer: str, options: Any = None) -> Judged:
    """A verdict by the answer's first word, of KINDS; another one does not compile.

    "musa" passes in that dialect alone.
    """
    if answer.startswith("musa"):
        answer = "pass" if options == {"dialect": "musa"} else "compile"
    kind = next((kind for kind in KINDS if answer.startswith(kind)), "compile")
    reward = KINDS.get(kind, -1.0)
    outcome = "pass" if kind == "fast" else kind
    return Judged(reward, outcome, f"It is {outcome}.\n", 0.0, {"outcome": {"kind": outcome}})


# ---- Stand-ins ----------------------------------------------------------------------------------


class SampleStatus(enum.Enum):
    PENDING = "pending"
    COMPLETED = "completed"
    TRUNCATED = "truncated"
    ABORTED = "aborted"


@dataclasses.dataclass
class Sample:
    Status = SampleStatus

    group_index: int | None = None
    index: int | None = None
    prompt: Any = ""
    tokens: list[int] = dataclasses.field(default_factory=list)
    response: str = ""
    response_length: int = 0
    label: str | None = None
    reward: Any = None
    loss_mask: list[int] | None = None
    rollout_log_probs: list[float] | None = None
    rollout_top_p_token_offsets: list[int] | None = None
    remove_sample: bool = False
    status: SampleStatus = SampleStatus.PENDING
    metadata: dict[str, Any] = dataclasses.field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "status": self.status.value}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Sample:
        return Sample(**{**data, "status": SampleStatus(data["status"])})


async def _generate(args: Any, sample: Any, sampling_params: dict[str, Any]) -> Any:
    from slime.rollout import sglang_rollout

    tokenizer = sglang_rollout.GenerateState(args).tokenizer
    ids = sample.tokens or tokenizer.encode(sample.prompt, add_special_tokens=False)
    body = {"input_ids": ids, "sampling_params": sampling_params}
    output = await sglang_rollout.post("http://router/generate", body)
    meta = output["meta_info"]
    sample.tokens = [*ids, *(token for _, token in meta["output_token_logprobs"])]
    sample.response += output["text"]
    sample.response_length += len(meta["output_token_logprobs"])
    sample.rollout_log_probs = [value for value, _ in meta["output_token_logprobs"]]
    sample.rollout_top_p_token_offsets = meta.get("top_p_token_offsets")
    statuses = {"abort": SampleStatus.ABORTED, "length": SampleStatus.TRUNCATED}
    sample.status = statuses.get(meta["finish_reason"]["type"], SampleStatus.COMPLETED)
    return sample


@dataclasses.dataclass
class DynamicFilterOutput:
    keep: bool
    reason: str | None = None


class RolloutDataSource:
    def __init__(self, args: Any) -> None:
        self.args = args
        self.sample_group_index = self.sample_index = self.sample_offset = 0
        self.dataset = [
            Sample(prompt=prompt, label=label) for prompt, label in args.stand_in_prompts
        ]

    def get_samples(self, num_samples: int) -> list[list[Any]]:
        groups = []
        for _ in range(num_samples):
            prompt = self.dataset[self.sample_offset % len(self.dataset)]
            self.sample_offset += 1
            group = [copy.deepcopy(prompt) for _ in range(self.args.n_samples_per_prompt)]
            for sample in group:
                sample.group_index, sample.index = self.sample_group_index, self.sample_index
                self.sample_index += 1
            self.sample_group_index += 1
            groups.append(group)
        return groups

    def save(self, rollout_id: int) -> None:
        Path(self.args.save, "rollout").mkdir(parents=True, exist_ok=True)

    def load(self, rollout_id: int | None = None) -> None:
        pass


class RolloutDataSourceWithBuffer(RolloutDataSource):
    def __init__(self, args: Any) -> None:
        super().__init__(args)
        self.buffer: list[list[Any]] = []

    def _get_samples_from_buffer(self, num_samples: int) -> list[list[Any]]:
        taken, self.buffer = self.buffer[:num_samples], self.buffer[num_samples:]
        return taken

    def add_samples(self, samples: list[list[Any]]) -> None:
        self.buffer += samples


def _module(name: str, **members: Any) -> None:
    module = types.ModuleType(name)
    module.__path__ = []
    for key, value in members.items():
        setattr(module, key, value)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)


def _install_stand_ins() -> None:
    for name in ("slime", "slime.rollout", "slime.rollout.filter_hub", "slime.utils"):
        _module(name)
    for name in ("slime.backends", "slime.backends.megatron_utils"):
        _module(name)
    _module("slime.rollout.sglang_rollout", generate=_generate, post=None, GenerateState=None)
    _module("slime.rollout.filter_hub.base_types", DynamicFilterOutput=DynamicFilterOutput)
    _module(
        "slime.rollout.data_source",
        RolloutDataSource=RolloutDataSource,
        RolloutDataSourceWithBuffer=RolloutDataSourceWithBuffer,
    )
    _module("slime.utils.types", Sample=Sample)
    _module("slime.utils.processing_utils", load_tokenizer=lambda *_, **__: Tokenizer())
    _module(
        "slime.backends.megatron_utils.cp_utils",
        all_gather_with_cp=lambda tensor, total_length, response_length: tensor,
    )


def _prepare_checkout() -> None:
    """Imports of the checkout that only a GPU image has: Megatron's groups, SGLang."""
    sys.path.insert(0, os.environ["MUSACODER_SLIME"])
    mpu = types.SimpleNamespace(
        get_context_parallel_world_size=lambda: 1,
        get_context_parallel_rank=lambda: 0,
        get_context_parallel_group=lambda: None,
        get_data_parallel_world_size=lambda with_context_parallel: 1,
    )
    _module("megatron")
    _module("megatron.core", mpu=mpu)
    import slime.rollout.data_source
    import slime.rollout.sglang_rollout
    import slime.utils.processing_utils

    for module in (slime.utils.processing_utils, slime.rollout.data_source):
        module.load_tokenizer = lambda *_, **__: Tokenizer()
        module.load_processor = lambda *_, **__: None


def prepare_slime() -> None:
    """Makes `import slime` work; call it before musacoder.slime_data is imported."""
    if "slime" not in sys.modules:
        prepare = _prepare_checkout if IS_REAL else _install_stand_ins
        prepare()


def use_engine(engine: Engine, is_aborted: bool = False) -> None:
    """Lets slime's rollout talk to `engine`."""
    from slime.rollout import sglang_rollout

    state = types.SimpleNamespace(tokenizer=Tokenizer(), processor=None, aborted=is_aborted)
    sglang_rollout.GenerateState = lambda args: state
    sglang_rollout.post = engine.post


class _Anything(types.ModuleType):
    """A module of the engine, which has every name and none of its behaviour."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _EngineFinder:
    """Finds SGLang, which slime's rollout manager imports and a CPU cannot run."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.split(".")[0] not in ("sglang", "sglang_router"):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> Any:
        return _Anything(spec.name)

    def exec_module(self, module: Any) -> None:
        pass


def prepare_engine_imports() -> None:
    """Makes slime.ray.rollout importable where SGLang is not installed."""
    sys.meta_path.append(_EngineFinder())
