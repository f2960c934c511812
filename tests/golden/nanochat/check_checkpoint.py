"""Checks a hearth checkpoint against nanochat: `check_checkpoint.py NANOCHAT HEARTH CHECKPOINT TEXT...`.

The tensors must load into nanochat's GPT as they are, and give the same loss as `hearth eval` on the beginning of
each text. Needs torch and safetensors."""
import json
import os
import subprocess
import sys
import tempfile

os.environ["NANOCHAT_DTYPE"] = "float32"
sys.path.insert(0, sys.argv[1])

import torch  # noqa: E402
from nanochat.gpt import GPT, GPTConfig  # noqa: E402
from safetensors.torch import load_file  # noqa: E402


def load(checkpoint):
    with open(os.path.join(checkpoint, "config.json")) as file:
        config = json.load(file)
    keys = ("sequence_len", "vocab_size", "n_layer", "n_head", "n_kv_head", "n_embd", "window_pattern")
    with torch.device("meta"):
        model = GPT(GPTConfig(**{key: config[key] for key in keys}))
    model.to_empty(device="cpu")
    model.init_weights()
    tensors = {k: v.float() for k, v in load_file(os.path.join(checkpoint, "model.safetensors")).items()}
    model.load_state_dict(tensors, strict=True)
    return model.eval(), config


def run(*arguments):
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def separator_of(checkpoint):
    """The token that hearth begins a document with."""
    with open(os.path.join(checkpoint, "tokenizer.json")) as file:
        added = json.load(file)["added_tokens"]
    names = {token["content"]: token["id"] for token in added}
    return names.get("<|bos|>", names.get("<|endoftext|>"))


def main(program, checkpoint, texts):
    model, config = load(checkpoint)
    tokenizer = os.path.join(checkpoint, "tokenizer.json")
    for path in texts:
        with open(path, encoding="utf-8", newline="") as file:
            part = file.read()[: config["sequence_len"]]  # at least a byte for each token
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8", newline="") as file:
            file.write(part)
            file.flush()
            ids = run(program, "tokenizer", "encode", "--tokenizer", tokenizer, file.name)
            ids = torch.tensor([[separator_of(checkpoint), *map(int, ids.split())]])
            with torch.no_grad():
                loss = model(ids[:, :-1], ids[:, 1:]).item()
            for precision, allowed in (("fp32", 1e-5), ("bf16", 5e-3)):
                found = json.loads(run(program, "eval", "--checkpoint", checkpoint, file.name, "--json",
                                       "--precision", precision))["loss"]
                print(f"{path}: loss {loss:.6f}, {precision} differs by {abs(found / loss - 1):.1e}")
                assert abs(found / loss - 1) < allowed


main(sys.argv[2], sys.argv[3], sys.argv[4:])
