#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small random models and their logits as transformers computes them, in float32.

decoder_test.cc holds our decoder against src/model/golden, which this made; $MC_MODEL_GOLDEN names
another folder for it, made with --size larger.

usage: make_model_golden.py [--size tiny|larger] --out DIR   (needs torch, transformers, tokenizers)
"""

import argparse
import json
import pathlib

import tokenizers
import torch
import transformers
from safetensors.torch import save_file

SIZES = {
    "tiny": {"vocab_size": 280, "hidden_size": 32, "intermediate_size": 40, "tokens": 96},
    "larger": {"vocab_size": 2000, "hidden_size": 256, "intermediate_size": 640, "tokens": 1500},
}


def configs(size: str) -> dict[str, transformers.PretrainedConfig]:
    sizes = {key: value for key, value in SIZES[size].items() if key != "tokens"}
    sizes |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    sizes |= {"max_position_embeddings": 2048}
    heads = {"head_dim": 16 if size == "tiny" else 96}
    narrow = sizes | {"num_attention_heads": 2, "num_key_value_heads": 1}
    # Some of the tested positions are beyond those of the first training.
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}
    scaling |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 32}
    scaling |= {"rope_theta": 500000.0}
    return {
        "smollm2": transformers.LlamaConfig(
            **narrow, rms_norm_eps=1e-5, rope_theta=100000.0, tie_word_embeddings=True
        ),
        "llama3": transformers.LlamaConfig(
            **sizes, **heads, rope_parameters=scaling, tie_word_embeddings=False
        ),
        "qwen2": transformers.Qwen2Config(**sizes, rope_theta=1e6, tie_word_embeddings=True),
        "llama": transformers.LlamaConfig(
            **sizes, **heads, rms_norm_eps=1e-5, tie_word_embeddings=False
        ),
        "llama_tied": transformers.LlamaConfig(
            **sizes, **heads, rms_norm_eps=1e-6, rope_theta=500000.0, tie_word_embeddings=True
        ),
        "qwen3": transformers.Qwen3Config(
            **sizes, **heads, rope_theta=1e6, tie_word_embeddings=True
        ),
    }


def byte_tokenizer() -> tokenizers.Tokenizer:
    """The 256 bytes and nothing else: the models are fed ids."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab = {character: number for number, character in enumerate(alphabet)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def write(folder: pathlib.Path, config: transformers.PretrainedConfig, num_tokens: int) -> None:
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # Larger than at the start: every part matters.
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    tokens = torch.randint(0, config.vocab_size, (num_tokens,))
    with torch.no_grad():
        logits = model(tokens[None]).logits[0]
    save_file({"tokens": tokens.float(), "logits": logits}, folder / "expected.safetensors")
    kept = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kept.pop("transformers_version", None)
    (folder / "config.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    for name, config in configs(options.size).items():
        write(options.out / name, config, SIZES[options.size]["tokens"])


if __name__ == "__main__":
    main()
