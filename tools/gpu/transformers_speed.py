# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped"
"""How fast transformers with torch.compile trains a model of one of the shapes of
`musacoder-learn bench`, for comparison on the same device in the same call.

    python3 tools/gpu/transformers_speed.py --shape 135m --rows 16 --steps 5

Random weights and tokens, the loss of every token, bfloat16 with PyTorch's fused AdamW.  Prints a
line of JSON.
"""

import argparse
import json
import statistics
import time
from typing import Any

import torch
import transformers

Sizes = dict[str, float]


def sizes(
    vocab: int, hidden: int, ffn: int, layers: int, heads: tuple[int, int], **more: float
) -> Sizes:
    """The keys of a configuration; `heads` are those of queries, and of keys and values."""
    return {
        "vocab_size": vocab,
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_hidden_layers": layers,
        "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1],
        **more,
    }


SHAPES: dict[str, tuple[str, Sizes]] = {
    "tiny": ("Llama", sizes(512, 64, 128, 2, (4, 2))),
    "135m": ("Llama", sizes(49152, 576, 1536, 30, (9, 3))),
    "0.6b": ("Qwen3", sizes(151936, 1024, 3072, 28, (16, 8), head_dim=128, rope_theta=1e6)),
    "1.7b": ("Qwen3", sizes(151936, 2048, 6144, 28, (16, 8), head_dim=128, rope_theta=1e6)),
}


def make_model(shape: str, masters: bool, device: str) -> Any:
    """The model of a shape, in float32 where `masters` are wanted and else in bfloat16."""
    family, keys = SHAPES[shape]
    config = getattr(transformers, f"{family}Config")(
        **keys, max_position_embeddings=8192, tie_word_embeddings=True, use_cache=False
    )
    config._attn_implementation = "sdpa"
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    return model.to(device, torch.float32 if masters else torch.bfloat16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="135m")
    parser.add_argument("--rows", type=int, default=16, help="sequences of a pass")
    parser.add_argument("--passes", type=int, default=1, help="passes of a step")
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--masters", action="store_true", help="float32 weights under autocast")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = make_model(args.shape, args.masters, args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    vocab = model.config.vocab_size
    tokens = torch.randint(0, vocab, (args.passes, args.rows, args.length), device=args.device)

    def loss_of(batch: torch.Tensor) -> Any:
        with torch.autocast(args.device, torch.bfloat16, enabled=args.masters):
            return model(input_ids=batch, labels=batch).loss

    step_loss = loss_of if args.no_compile else torch.compile(loss_of, dynamic=False)
    times, loss, compile_s = [], 0.0, 0.0
    for step in range(args.steps + 3):
        begin = time.perf_counter()
        for batch in tokens:
            part = step_loss(batch) / args.passes
            part.backward()
            loss = part.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad()
        loss = float(loss)
        if step == 0:
            compile_s = time.perf_counter() - begin
        if step >= 3:
            times.append(time.perf_counter() - begin)
    seconds = statistics.median(times)
    print(
        json.dumps(
            {
                "bench": "transformers train",
                "version": transformers.__version__,
                "shape": args.shape,
                "compiled": not args.no_compile,
                "masters": args.masters,
                "rows": args.rows,
                "passes": args.passes,
                "length": args.length,
                "tokens_per_s": round(tokens.numel() / seconds),
                "step_ms": seconds * 1000,
                "first_step_s": compile_s,
                "loss": loss * args.passes,
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
