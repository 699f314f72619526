# SPDX-License-Identifier: Apache-2.0
"""Our tokenizer against the `tokenizers` package: the same ids for the same text.

Tokenizers of four kinds are trained here on this repository's own text, with the pre-tokenisers of
GPT-2, SmolLM2, Llama 3 and Qwen3; $MC_TOKENIZERS names more files (separated by ":").  The strings
come of a seed; $MC_STRINGS says how many.
"""

import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

import jinja2.sandbox
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.trainers import BpeTrainer

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEARN = os.environ.get("MUSACODER_LEARN", str(ROOT / "build/dev/bin/musacoder-learn"))
NUM_STRINGS = int(os.environ.get("MC_STRINGS", "1000"))
SEED = 20

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def split(pattern: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


KINDS: dict[str, pre_tokenizers.PreTokenizer] = {
    "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=True),
    "smollm2": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    ),
    "llama3": split(LLAMA3),
    "qwen3": split(QWEN),
}


def own_text() -> list[str]:
    paths = sorted([*ROOT.glob("src/**/*.cc"), *ROOT.glob("docs/*.md"), *ROOT.glob("tasks/*.py")])
    return [path.read_text(encoding="utf-8") for path in paths][:120]


def train(kind: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
    tokenizer.pre_tokenizer = KINDS[kind]
    tokenizer.decoder = decoders.ByteLevel()
    if kind == "qwen3":
        tokenizer.normalizer = normalizers.NFC()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = BpeTrainer(
        vocab_size=1500, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(own_text(), trainer)
    tokenizer.add_tokens(
        [
            AddedToken("<think>", normalized=False),
            AddedToken("<tool>", normalized=True),
            AddedToken("caf\u00e9!", normalized=True),
            AddedToken("<word>", single_word=True, normalized=False),
            AddedToken("<left>", lstrip=True, normalized=False),
            AddedToken("<right>", rstrip=True, normalized=False),
        ]
    )
    return tokenizer


def code_point(rng: random.Random) -> str:
    ranges = [(0x20, 0x7F), (0x20, 0x7F), (0, 0x20), (0x80, 0x250), (0x300, 0x370), (0x370, 0x600)]
    ranges += [(0x900, 0xE00), (0x1100, 0x1200), (0x1E00, 0x2070), (0x2070, 0x2C00)]
    ranges += [(0x3000, 0x3100), (0x4E00, 0x5000), (0xAC00, 0xAD00), (0xF900, 0xFB50)]
    ranges += [(0x1F300, 0x1F700), (0x1D400, 0x1D800), (0x180E, 0x180F), (0xFF00, 0xFFEF)]
    return chr(rng.randrange(*rng.choice(ranges)))


def random_string(rng: random.Random, corpus: str) -> str:
    parts = []
    for _ in range(rng.randrange(1, 8)):
        what = rng.randrange(8)
        if what < 3:
            start = rng.randrange(len(corpus))
            parts.append(corpus[start : start + rng.randrange(1, 80)])
        elif what < 5:
            parts.append("".join(code_point(rng) for _ in range(rng.randrange(1, 12))))
        elif what == 5:
            parts.append(rng.choice(" \t\n\r\u00a0\u2003\u3000\x85") * rng.randrange(1, 6))
        elif what == 6:
            names = [*SPECIAL, "<think>", "<tool>", "cafe\u0301!", "caf\u00e9!"]
            parts.append(
                rng.choice([*names, "<word>", "<left>", "<right>", "<|im_", "it's", "I'LL"])
            )
        else:
            parts.append(rng.randbytes(rng.randrange(1, 9)).decode("utf-8", "replace"))
    return "".join(parts)


def ours(path: pathlib.Path, values: list[object]) -> list[dict[str, object]]:
    lines = "".join(json.dumps(value) + "\n" for value in values)
    done = subprocess.run(
        [LEARN, "tokenize", "--tokenizer", str(path)], input=lines, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [json.loads(line) for line in done.stdout.rstrip("\n").split("\n")]


class TokenizerTest(unittest.TestCase):
    def compare(self, path: pathlib.Path, *, is_lossless: bool = False) -> None:
        theirs = Tokenizer.from_file(str(path))
        rng = random.Random(SEED)
        corpus = "\n".join(own_text())
        strings = [random_string(rng, corpus) for _ in range(NUM_STRINGS)]
        strings += ["", " ", "a" * 3000, " " * 3000, "\u212b", "\u0041\u030a", "\u017fs 's'\u017f"]
        for string, got in zip(strings, ours(path, list(strings)), strict=True):
            expected = theirs.encode(string, add_special_tokens=False).ids
            self.assertEqual(got["ids"], expected, f"{path.name}, seed {SEED}: {string!r}")
            if is_lossless and "<" not in string:
                self.assertEqual(got["text"], string)

    def test_ids_are_those_of_the_tokenizers_package(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for kind in KINDS:
                with self.subTest(kind=kind):
                    path = pathlib.Path(folder) / f"{kind}.json"
                    train(kind).save(str(path))
                    self.compare(path, is_lossless=kind in {"smollm2", "llama3"})

    def test_merges_as_strings_are_read_as_pairs_are(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "old.json"
            train("smollm2").save(str(path))
            content = json.loads(path.read_text(encoding="utf-8"))
            content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
            path.write_text(json.dumps(content), encoding="utf-8")
            self.compare(path)

    def test_other_files_too(self) -> None:
        for name in filter(None, os.environ.get("MC_TOKENIZERS", "").split(":")):
            with self.subTest(name=name):
                self.compare(pathlib.Path(name))


class ChatTest(unittest.TestCase):
    """Our rendering against the template that `init` writes, as transformers renders templates."""

    def test_the_prompt_is_what_the_template_gives(self) -> None:
        messages = [
            {"role": "system", "content": "  Be brief.\n"},
            {"role": "user", "content": "a {{ b }} <b>&amp; 'c'"},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "\u00e9\n\n"},
        ]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            train("qwen3").save(str(path))
            model = pathlib.Path(folder) / "model"
            init = [LEARN, "init", "--out", str(model), "--tokenizer", str(path), "--width", "24"]
            subprocess.run(init, check=True, capture_output=True)
            config = json.loads((model / "tokenizer_config.json").read_text(encoding="utf-8"))
            got = ours(path, [messages])[0]
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True
        )
        template = environment.from_string(config["chat_template"])
        text = template.render(messages=messages, add_generation_prompt=True)
        self.assertEqual(got["text"], text)


if __name__ == "__main__":
    unittest.main()
