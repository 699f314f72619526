# SPDX-License-Identifier: Apache-2.0
"""Holds musacoder-learn against transformers on checkpoints: chat templates, sampling, saving.

A folder of Jinja files (--templates) gives the chat templates: those of released models, which
are not ours to keep here.  For each of them and each shape of make_model_golden.py it makes a
small random model with that template and compares

  - the text and tokens of conversations with apply_chat_template,
  - greedy answers and their log-probabilities with transformers' logits,
  - the folder that a training step of rate 0 leaves: loaded by transformers, and file by file.

usage: compare_with_transformers.py --learn build/dev/bin/musacoder-learn --templates DIR
       (needs torch, transformers, tokenizers; no test runs it)
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import make_model_golden
import tokenizers
import torch
import transformers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|end_of_text|>"]
SPECIAL += ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<think>", "</think>"]
USER = {"role": "user", "content": " Write a kernel.\n\nFast, please: é 1234 "}
ANSWER = {"role": "assistant", "content": "```python\nx = 1\n```"}
SYSTEM = {"role": "system", "content": "You write kernels."}
CONVERSATIONS = [[USER], [SYSTEM, USER], [USER, ANSWER, USER], [SYSTEM, USER, ANSWER, USER]]
LOGIT_ERROR_MAX = 1e-4
NUM_TOKENS = 12

Tokenizer = transformers.PreTrainedTokenizerFast


def make_tokenizer(template: str) -> Tokenizer:
    plain = make_model_golden.byte_tokenizer()
    plain.decoder = tokenizers.decoders.ByteLevel()
    plain.add_special_tokens(SPECIAL)
    end = "<|eot_id|>" if "<|eot_id|>" in template else "<|im_end|>"
    made = Tokenizer(tokenizer_object=plain, bos_token="<|begin_of_text|>", eos_token=end)
    made.chat_template = template
    return made


def make_model(folder: pathlib.Path, config: Any, template: str, dtype: torch.dtype) -> None:
    torch.manual_seed(2)
    tokenizer = make_tokenizer(template)
    config.eos_token_id = tokenizer.eos_token_id
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def learn(program: str, *words: object, stdin: str | None = None) -> str:
    command = [program, *map(str, words)]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def check_conversations(program: str, folder: pathlib.Path) -> int:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    stdin = "".join(json.dumps(messages) + "\n" for messages in CONVERSATIONS)
    lines = learn(program, "tokenize", "--tokenizer", folder, stdin=stdin).splitlines()
    for messages, line in zip(CONVERSATIONS, lines, strict=True):
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ours = json.loads(line)
        assert ours["text"] == text, (ours["text"], text)
        assert ours["ids"] == tokenizer.encode(text, add_special_tokens=False)
    return len(lines)


def check_answers(program: str, folder: pathlib.Path) -> float:
    """The largest difference of log-probabilities; greedy tokens must be the likeliest ones."""
    prompts = folder.parent / "prompts.jsonl"
    rows = [{"id": str(i), "prompt": messages} for i, messages in enumerate(CONVERSATIONS)]
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    out = folder.parent / "answers.jsonl"
    words = ["generate", "--model", folder, "--prompts", prompts, "--out", out]
    learn(program, *words, "--temperature", 0, "--max-tokens", NUM_TOKENS, "--logprobs")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    worst = 0.0
    for line in out.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        messages = CONVERSATIONS[int(row["id"])]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        prompt = tokenizer.encode(text, add_special_tokens=False)
        with torch.no_grad():
            logits = model(torch.tensor([prompt + row["tokens"]])).logits[0, len(prompt) - 1 :]
        log_p = logits.log_softmax(-1)
        for i, token in enumerate(row["tokens"]):
            assert int(log_p[i].argmax()) == token, (row, i)
            worst = max(worst, abs(float(log_p[i, token]) - row["logprobs"][i]))
    assert worst <= LOGIT_ERROR_MAX, worst
    return worst


def check_saved(program: str, folder: pathlib.Path) -> None:
    """A training step of rate 0 writes what it read."""
    data = folder.parent / "sft.jsonl"
    data.write_text(json.dumps({"messages": [USER, ANSWER]}) + "\n", encoding="utf-8")
    run = folder.parent / "run"
    words = ["sft", "--model", folder, "--data", data, "--out", run, "--steps", 1]
    learn(program, *words, "--lr", 0, "--weight-decay", 0)
    before = transformers.AutoModelForCausalLM.from_pretrained(folder)
    after, notes = transformers.AutoModelForCausalLM.from_pretrained(
        run / "model", output_loading_info=True
    )
    assert not notes["missing_keys"] and not notes["unexpected_keys"], notes
    assert after.dtype == before.dtype
    for name, weight in before.state_dict().items():
        assert torch.equal(weight, after.state_dict()[name]), name
    for path in folder.iterdir():
        if path.suffix != ".safetensors":
            assert path.read_bytes() == (run / "model" / path.name).read_bytes(), path
    transformers.AutoTokenizer.from_pretrained(run / "model")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--learn", required=True)
    parser.add_argument("--templates", type=pathlib.Path, required=True)
    options = parser.parse_args()
    templates = sorted(options.templates.glob("*.jinja"))
    for shape in make_model_golden.configs("tiny"):
        for number, path in enumerate(templates):
            config = make_model_golden.configs("tiny")[shape]
            dtype = torch.bfloat16 if number % 2 else torch.float32
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name) / "model"
                make_model(folder, config, path.read_text(encoding="utf-8"), dtype)
                count = check_conversations(options.learn, folder)
                worst = check_answers(options.learn, folder)
                check_saved(options.learn, folder)
            print(f"{shape} {path.stem} {dtype}: {count} prompts equal, log-probs {worst:.1e}")


if __name__ == "__main__":
    main()
