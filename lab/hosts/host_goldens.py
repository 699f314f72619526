# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped"
"""Golden cases and a tokenizer for slime_goldens.py, verl_goldens.py and trl_goldens.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/plugins")]
TOLERANCE = 1e-6  # The hosts compute in fp32; a difference is relative above 1, else absolute.
NAN = float("nan")

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def cases(name: str, key: str = "cases") -> list[dict[str, Any]]:
    data = json.loads((ROOT / "src/rl/golden" / f"{name}.json").read_text())
    found: list[dict[str, Any]] = data[key]
    return found


def rows(batch: dict[str, Any], name: str, missing: float = NAN) -> list[list[float]]:
    """Packed values by sequence; `missing` fills the places that no code may read."""
    begin, found = 0, []
    for end in batch["sequence_ends"]:
        values = batch[name][begin:end]
        found.append([missing if value is None else float(value) for value in values])
        begin = end
    return found


def group_of(batch: dict[str, Any]) -> list[int]:
    """The number of each sequence's group."""
    ends = batch["group_ends"]
    return [sum(end <= i for end in ends) for i in range(ends[-1])]


def differs(found: list[float], expected: list[float]) -> float:
    return max(
        abs(one - other) / max(1, abs(other)) for one, other in zip(found, expected, strict=True)
    )


def byte_tokenizer() -> Any:
    """A tokenizer of transformers with one token a byte and a chat template; nothing is fetched."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|pad|>"
    )
    fast.add_special_tokens(
        {"additional_special_tokens": ["<|user|>", "<|assistant|>", "<|system|>"]}
    )
    fast.chat_template = TEMPLATE
    return fast
