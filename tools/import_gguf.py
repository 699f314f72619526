#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts a GGUF file to a Hugging Face folder: weights, configuration, tokenizer, chat template.

It supports Llama, Qwen2 and Qwen3 models with a byte-level BPE, in every quantisation that the gguf
package decodes (Q4_0, Q4_1, Q8_0, F16, BF16 and others). The folder has float32 weights with the
same values.  Features that the folder cannot express are refused by name.

usage: import_gguf.py FILE.gguf --out FOLDER      (with the Python in use; needs the package gguf)
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Json = dict[str, Any]

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
WHOLE = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
OF_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
ROPE_FACTORS = "rope_freqs.weight"
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}

# The splitters of a tokenizer by the name that GGUF gives them: its expressions, each of whose
# matches is a piece, and whether text is brought into the form NFC before.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SPLITTERS: dict[str, tuple[list[str], bool]] = {
    "gpt-2": ([GPT2], False),
    "smollm": ([r"\p{N}", GPT2], False),
    "llama-bpe": ([WORDS % "{1,3}"], False),
    "qwen2": ([WORDS % ""], True),
}
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # Types of tokens.


class Refused(Exception):
    """The file cannot be used; the message says why."""


class File:
    """A GGUF file: its metadata by name, and its tensors."""

    def __init__(self, path: pathlib.Path) -> None:
        try:
            self.reader = gguf.GGUFReader(path)
        except (OSError, ValueError, IndexError, KeyError) as wrong:
            raise Refused(f"not a GGUF file that can be read: {wrong}") from wrong
        self.architecture = self.text("general.architecture")
        if self.architecture not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            raise Refused(f"the architecture {self.architecture} is not supported; {known} are")
        self.tensors = {tensor.name: tensor for tensor in self.reader.tensors}

    def value(self, key: str, otherwise: Any = None) -> Any:
        field = self.reader.get_field(key)
        return otherwise if field is None else field.contents()

    def needed(self, key: str) -> Any:
        value = self.value(key)
        if value is None:
            raise Refused(f"the file has no {key}")
        return value

    def text(self, key: str) -> str:
        return str(self.needed(key))

    def of_model(self, key: str, otherwise: Any = None) -> Any:
        return self.value(f"{self.architecture}.{key}", otherwise)

    def size(self, key: str) -> int:
        return int(self.needed(f"{self.architecture}.{key}"))


# ---- The configuration ---------------------------------------------------------------------------


def heads_of(file: File) -> tuple[int, int, int]:
    """Heads of queries, heads of keys, and their width."""
    heads = file.size("attention.head_count")
    kv_heads = int(file.of_model("attention.head_count_kv", heads))
    head_dim = file.of_model("attention.key_length", file.of_model("rope.dimension_count"))
    return heads, kv_heads, int(head_dim or file.size("embedding_length") // heads)


def llama3_factors(head_dim: int, theta: float, factor: float) -> Array:
    """The factors by which Llama 3.1 stretches the rotary positions of each frequency."""
    low, high = LLAMA3["low_freq_factor"], LLAMA3["high_freq_factor"]
    turns = np.array(
        [
            LLAMA3["original_max_position_embeddings"] / (2 * math.pi * theta ** (i / head_dim))
            for i in range(0, head_dim, 2)
        ]
    )
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / ((1 - smooth) / factor + smooth)).astype(np.float32)


def rope_scaling(file: File, head_dim: int, theta: float) -> Json | None:
    kind = file.of_model("rope.scaling.type", "none")
    if kind != "none":
        raise Refused(f"rotary positions that are scaled by {kind} are not supported")
    if ROPE_FACTORS not in file.tensors:
        return None
    found = values_of(file.tensors[ROPE_FACTORS]).reshape(-1)
    factor = float(found.max())
    expected = llama3_factors(head_dim, theta, factor)
    if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-4):
        raise Refused(f"{ROPE_FACTORS} has other factors than Llama 3.1, 3.2 and 3.3")
    return {"rope_type": "llama3", "factor": factor, **LLAMA3}


def ends_of(file: File) -> list[int]:
    names = ("eos", "eot", "eom")
    found = [file.value(f"tokenizer.ggml.{name}_token_id") for name in names]
    return sorted({int(number) for number in found if number is not None})


def config_of(file: File) -> Json:
    heads, kv_heads, head_dim = heads_of(file)
    theta = float(file.of_model("rope.freq_base", 10000.0))
    config: Json = {
        "architectures": [ARCHITECTURES[file.architecture]],
        "model_type": file.architecture,
        "vocab_size": int(file.tensors["token_embd.weight"].shape[1]),
        "hidden_size": file.size("embedding_length"),
        "intermediate_size": file.size("feed_forward_length"),
        "num_hidden_layers": file.size("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "max_position_embeddings": file.size("context_length"),
        "rms_norm_eps": float(f"{file.of_model('attention.layer_norm_rms_epsilon'):.6g}"),
        "rope_theta": theta,
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "hidden_act": "silu",
        "torch_dtype": "float32",
        "eos_token_id": ends_of(file),
    }
    begin = file.value("tokenizer.ggml.bos_token_id")
    if begin is not None:
        config["bos_token_id"] = int(begin)
    scaling = rope_scaling(file, head_dim, theta)
    return config if scaling is None else {**config, "rope_scaling": scaling}


# ---- The tokenizer -------------------------------------------------------------------------------


def tokenizer_of(file: File) -> Json:
    """tokenizer.json of the tokenizers package."""
    kind, splitter = file.text("tokenizer.ggml.model"), file.text("tokenizer.ggml.pre")
    if kind != "gpt2" or splitter not in SPLITTERS:
        known = ", ".join(SPLITTERS)
        raise Refused(f"a tokenizer of type {kind}, {splitter} is not supported; gpt2, {known} are")
    expressions, is_nfc = SPLITTERS[splitter]
    texts = file.needed("tokenizer.ggml.tokens")
    kinds = file.value("tokenizer.ggml.token_type", [NORMAL] * len(texts))
    added = [
        {"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": kinds[i] == CONTROL}
        for i, text in enumerate(texts) if kinds[i] in (CONTROL, USER_DEFINED)
    ]  # fmt: skip
    steps: list[Json] = [
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
        for regex in expressions
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "NFC"} if is_nfc else None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [*steps, {**byte_level, "use_regex": False}],
        },
        "post_processor": None,
        "decoder": {**byte_level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": splitter == "llama-bpe",
            # Added tokens are included, since the tokenizers package renumbers tokens that are not
            # here.
            "vocab": {text: i for i, text in enumerate(texts)},
            "merges": [merge.split(" ", 1) for merge in file.needed("tokenizer.ggml.merges")],
        },
    }


def tokenizer_config_of(file: File) -> Json:
    texts = file.needed("tokenizer.ggml.tokens")
    config: Json = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": file.size("context_length"),
    }
    for name, key in (("bos", "bos"), ("eos", "eos"), ("padding", "pad"), ("unknown", "unk")):
        number = file.value(f"tokenizer.ggml.{name}_token_id")
        if number is not None:
            config[f"{key}_token"] = texts[int(number)]
    template = file.value("tokenizer.chat_template")
    return config if template is None else {**config, "chat_template": template}


# ---- The weights ---------------------------------------------------------------------------------


def values_of(tensor: gguf.ReaderTensor) -> Array:
    try:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    except NotImplementedError as wrong:
        raise Refused(f"{tensor.name}: {tensor.tensor_type.name} is not supported") from wrong
    return np.ascontiguousarray(values, dtype=np.float32)


def pairs_to_halves(values: Array, heads: int) -> Array:
    """GGUF's Llama rotates neighbours of a head; Hugging Face rotates its first and second half."""
    shape = values.shape
    return values.reshape(heads, -1, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def name_of(name: str) -> str | None:
    """The name of a tensor in the folder, or None for one that no model of ours has."""
    block = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
    if block and block[2] in OF_BLOCK:
        return f"model.layers.{block[1]}.{OF_BLOCK[block[2]]}.{block[3]}"
    stem, _, kind = name.rpartition(".")
    return f"{WHOLE[stem]}.weight" if kind == "weight" and stem in WHOLE else None


def weights_of(file: File) -> Iterator[tuple[str, tuple[int, ...], Callable[[], Array]]]:
    """The name, shape and values of each tensor; values are decoded on demand."""
    heads, kv_heads, _ = heads_of(file)
    for tensor in file.tensors.values():
        if tensor.name == ROPE_FACTORS:
            continue
        name = name_of(tensor.name)
        if name is None:
            raise Refused(f"the tensor {tensor.name} is not supported")
        rotated = {"q_proj": heads, "k_proj": kv_heads}.get(name.split(".")[-2])
        shape = tuple(int(size) for size in reversed(tensor.shape))

        def decode(tensor: gguf.ReaderTensor = tensor, rotated: int | None = rotated) -> Array:
            values = values_of(tensor)
            if file.architecture == "llama" and rotated:
                return pairs_to_halves(values, rotated)
            return values

        yield name, shape, decode


def write_weights(path: pathlib.Path, file: File) -> None:
    """A safetensors file: the length of a JSON header, the header, the numbers."""
    weights = sorted(weights_of(file), key=lambda one: one[0])
    header: Json = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape, _ in weights:
        begin, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for _, _, decode in weights:
            out.write(decode().tobytes())


def write_folder(path: pathlib.Path, folder: pathlib.Path) -> None:
    file = File(path)
    texts = {
        "config.json": config_of(file),
        "generation_config.json": {"eos_token_id": ends_of(file)},
        "tokenizer.json": tokenizer_of(file),
        "tokenizer_config.json": tokenizer_config_of(file),
    }
    folder.mkdir(parents=True)
    write_weights(folder / "model.safetensors", file)
    for name, value in texts.items():
        (folder / name).write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="Make a Hugging Face folder of a GGUF file.")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder, a new one")
    arguments = parser.parse_args()
    out: pathlib.Path = arguments.out
    if out.exists():
        print(f"import_gguf: {out} is there already; give another --out", file=sys.stderr)
        return 2
    part = out.with_name(out.name + ".part")
    shutil.rmtree(part, ignore_errors=True)  # An interrupted run may have left it.
    try:
        write_folder(arguments.file, part)
    except (Refused, OSError) as wrong:
        print(f"import_gguf: {arguments.file}: {wrong}", file=sys.stderr)
        return 2
    part.rename(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
