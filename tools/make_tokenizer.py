#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a byte-level BPE on text and writes a tokenizer.json for musacoder-learn.

The special tokens are <|endoftext|>, <|im_start|> and <|im_end|>; the 256 bytes are always tokens,
so every text can be written.  The same files give the same tokenizer.

No token crosses the end of a word, as in other models' tokenizers, or with `--split lines` the end
of a line.  Then a line that every answer has becomes one token, which makes repetitive text several
times shorter.

usage: make_tokenizer.py --text FILE... --vocab 500 [--split words|lines] --out tokenizer.json
"""

import argparse
import json
import pathlib
import sys
from collections.abc import Iterator

import tokenizers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# Digits are separate tokens, so that a number is never a rare token.
PATTERNS = {
    "words": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "lines": r"\p{N}|[^\p{N}\n]+\n?|\n",
}


def strings(value: object) -> Iterator[str]:
    """All messages' contents in a row of JSON."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "content" and isinstance(inner, str):
                yield inner
            else:
                yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def texts(paths: list[pathlib.Path]) -> Iterator[str]:
    """Whole files; of .jsonl files the contents of the messages."""
    for path in paths:
        if path.suffix != ".jsonl":
            yield path.read_text(encoding="utf-8")
            continue
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                yield from strings(json.loads(line))


def train(paths: list[pathlib.Path], vocab: int, split: str) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERNS[split]), "isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=SPECIAL,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(paths), trainer)
    return tokenizer


def main() -> int:
    parser = argparse.ArgumentParser(description="Train a byte-level BPE.")
    parser.add_argument("--text", nargs="+", type=pathlib.Path, required=True)
    parser.add_argument("--vocab", type=int, default=500)
    parser.add_argument("--split", choices=sorted(PATTERNS), default="words")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    if options.vocab < 256 + len(SPECIAL):
        print(f"make_tokenizer: --vocab is at least {256 + len(SPECIAL)}", file=sys.stderr)
        return 2
    try:
        train(options.text, options.vocab, options.split).save(str(options.out))
    except (OSError, ValueError) as error:
        print(f"make_tokenizer: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
