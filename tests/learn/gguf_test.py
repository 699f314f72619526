# SPDX-License-Identifier: Apache-2.0
"""tools/import_gguf.py on files that the gguf package wrote from models of init."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import tokenizers

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEARN = os.environ.get("MUSACODER_LEARN", str(ROOT / "build/dev/bin/musacoder-learn"))
HEADS, KV_HEADS = 4, 2
# The words of Hugging Face and of GGUF; a reader's table, kept apart from the tool's.
NAMES = [
    ("model.embed_tokens", "token_embd"),
    ("model.norm", "output_norm"),
    ("model.layers.", "blk."),
    ("input_layernorm", "attn_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("self_attn.", "attn_"),
    ("mlp.", "ffn_"),
    ("_proj", ""),
]
TYPES = gguf.GGMLQuantizationType
EXACT = TYPES.F32
Tensors = dict[str, npt.NDArray[np.float32]]


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*map(str, arguments)], capture_output=True, text=True, check=False)


def read_tensors(path: pathlib.Path) -> Tensors:
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    return {
        name: np.frombuffer(
            data[start + one["data_offsets"][0] : start + one["data_offsets"][1]], np.float32
        ).reshape(one["shape"])
        for name, one in header.items()
        if name != "__metadata__"
    }


def halves_to_pairs(rows: npt.NDArray[np.float32], heads: int) -> npt.NDArray[np.float32]:
    """Row i of a head's first half comes before row i of its second half."""
    head_dim = rows.shape[0] // heads
    order = [
        head * head_dim + half * (head_dim // 2) + i
        for head in range(heads)
        for i in range(head_dim // 2)
        for half in range(2)
    ]
    return rows[order]


def gguf_name(name: str) -> str:
    for old, new in NAMES:
        name = name.replace(old, new)
    return name


class GgufTest(unittest.TestCase):
    folder: tempfile.TemporaryDirectory[str]
    root: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        text = cls.root / "text.txt"
        text.write_text("The kernel adds 12 numbers, it's fast.\n" * 20, encoding="utf-8")
        make = [sys.executable, ROOT / "tools/make_tokenizer.py", "--text", text]
        done = run(*make, "--vocab", 300, "--out", cls.root / "tokenizer.json")
        assert done.returncode == 0, done.stderr
        base = ["init", "--out", cls.root / "base", "--tokenizer", cls.root / "tokenizer.json"]
        sizes = ["--layers", 2, "--width", 64, "--heads", HEADS, "--kv-heads", KV_HEADS]
        done = run(LEARN, *base, *sizes)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def write(self, name: str, kind: TYPES, architecture: str = "llama") -> pathlib.Path:
        """The model of init as a GGUF file, its matrices in the given type."""
        config = json.loads((self.root / "base/config.json").read_text())
        path = self.root / name
        writer = gguf.GGUFWriter(path, architecture)
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_embedding_length(config["hidden_size"])
        writer.add_block_count(config["num_hidden_layers"])
        writer.add_feed_forward_length(config["intermediate_size"])
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(KV_HEADS)
        writer.add_rope_freq_base(config["rope_theta"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        self.write_tokenizer(writer)
        for tensor, values in self.tensors().items():
            if architecture == "llama" and ("q_proj" in tensor or "k_proj" in tensor):
                values = halves_to_pairs(values, HEADS if "q_proj" in tensor else KV_HEADS)
            stored = kind if values.ndim == 2 else EXACT
            raw = gguf.quants.quantize(values, stored)
            writer.add_tensor(gguf_name(tensor), raw, raw_dtype=stored)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def write_tokenizer(self, writer: Any) -> None:
        tokenizer = json.loads((self.root / "base/tokenizer.json").read_text())
        added = {one["id"] for one in tokenizer["added_tokens"]}
        vocab: dict[str, int] = dict(tokenizer["model"]["vocab"])
        vocab |= {one["content"]: one["id"] for one in tokenizer["added_tokens"]}
        texts = sorted(vocab, key=lambda text: vocab[text])
        merges = tokenizer["model"]["merges"]
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("qwen2")
        writer.add_token_list(texts)
        writer.add_token_types([3 if vocab[text] in added else 1 for text in texts])
        writer.add_token_merges([" ".join(one) if isinstance(one, list) else one for one in merges])
        writer.add_eos_token_id(vocab["<|im_end|>"])

    def tensors(self) -> Tensors:
        return read_tensors(self.root / "base/model.safetensors")

    def imported(self, name: str, *file: Any) -> Tensors:
        path = self.write(name + ".gguf", *file)
        done = run(sys.executable, ROOT / "tools/import_gguf.py", path, "--out", self.root / name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return read_tensors(self.root / name / "model.safetensors")

    def answer(self, model: str) -> str:
        prompts = self.root / "prompts.jsonl"
        prompt = [{"role": "user", "content": "The kernel adds 12 numbers"}]
        prompts.write_text(json.dumps({"id": "a", "prompt": prompt}) + "\n")
        out = self.root / f"{model}.jsonl"
        paths = ["--model", self.root / model, "--prompts", prompts, "--out", out]
        done = run(LEARN, "generate", *paths, "--temperature", 0, "--max-tokens", 8, "--logprobs")
        self.assertEqual(done.returncode, 0, done.stderr)
        return out.read_text()

    def test_float32_is_the_same_model(self) -> None:
        found, expected = self.imported("exact", EXACT), self.tensors()
        self.assertEqual(found.keys(), expected.keys())
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values, name)
        self.assertEqual(self.answer("exact"), self.answer("base"))
        made, own = (
            tokenizers.Tokenizer.from_file(str(self.root / name / "tokenizer.json"))
            for name in ("exact", "base")
        )
        for text in ("<|im_start|>user\nThe kernel adds 12<|im_end|>", "it's é\u00a0你  \n\n x"):
            self.assertEqual(made.encode(text).ids, own.encode(text).ids)

    def test_matrices_are_those_that_the_gguf_package_decodes(self) -> None:
        for kind in (TYPES.Q4_0, TYPES.Q4_1, TYPES.Q8_0, TYPES.F16, TYPES.BF16):
            found = self.imported(kind.name, kind)
            for name, values in self.tensors().items():
                raw = gguf.quants.quantize(values, kind if values.ndim == 2 else EXACT)
                decoded = gguf.quants.dequantize(raw, kind if values.ndim == 2 else EXACT)
                np.testing.assert_array_equal(found[name], decoded, f"{kind.name} {name}")

    def test_matrices_of_qwen_are_not_turned(self) -> None:
        found = self.imported("qwen", EXACT, "qwen2")
        name = "model.layers.0.self_attn.q_proj.weight"
        np.testing.assert_array_equal(found[name], self.tensors()[name])

    def test_what_cannot_be_read_is_told_in_one_line(self) -> None:
        broken = self.root / "broken.gguf"
        broken.write_bytes(b"GGUF" + bytes(40))
        whole = self.write("whole.gguf", EXACT).read_bytes()
        cut = self.root / "cut.gguf"
        cut.write_bytes(whole[: len(whole) // 2])
        for path, reason in [
            (broken, "not a GGUF file"),
            (cut, "not a GGUF file"),
            (self.write("other.gguf", EXACT, "gemma"), "gemma is not supported"),
            (self.root / "nothing.gguf", "No such file"),
        ]:
            command = [sys.executable, ROOT / "tools/import_gguf.py", path]
            done = run(*command, "--out", self.root / "refused")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(reason, done.stderr)
            self.assertFalse((self.root / "refused").exists())


if __name__ == "__main__":
    unittest.main()
