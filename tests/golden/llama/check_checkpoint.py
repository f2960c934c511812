"""Checks a hearth checkpoint against transformers: `check_checkpoint.py HEARTH CHECKPOINT TEXT...`.

The directory must load in AutoModelForCausalLM and AutoTokenizer as it is, give the same ids for every
text, and the same loss as `hearth eval` on the beginning of each. Needs torch and transformers.
"""

import json
import subprocess
import sys
import tempfile

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def hearth(*arguments):
    return json.loads(subprocess.run(arguments, check=True, capture_output=True).stdout)


def main(program, checkpoint, texts):
    model, report = AutoModelForCausalLM.from_pretrained(checkpoint, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"], report
    model = model.float().eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    for path in texts:
        text = open(path, encoding="utf-8", newline="").read()
        theirs = tokenizer(text, add_special_tokens=False).input_ids
        command = [program, "tokenizer", "encode", "--tokenizer", checkpoint + "/tokenizer.json", path]
        ours = [int(word) for word in subprocess.run(command, check=True, capture_output=True).stdout.split()]
        assert ours == theirs, f"{path}: ids differ"
        # One row: the separator and what fits behind it.
        separator = tokenizer.bos_token_id
        ids = ([separator] if separator is not None else []) + theirs
        ids = ids[: model.config.max_position_embeddings]
        part = tokenizer.decode(ids[1:] if separator is not None else ids)
        while tokenizer(part, add_special_tokens=False).input_ids != ids[1:]:
            part = part[:-1]
            ids = [separator] + tokenizer(part, add_special_tokens=False).input_ids
        with torch.no_grad():
            loss = model(torch.tensor([ids]), labels=torch.tensor([ids])).loss.item()
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8", newline="") as file:
            file.write(part)
            file.flush()
            for precision, allowed in (("fp32", 1e-5), ("bf16", 5e-3)):
                result = hearth(program, "eval", "--checkpoint", checkpoint, file.name, "--json",
                                "--precision", precision)
                difference = abs(result["loss"] / loss - 1)
                print(f"{path}: {len(theirs)} ids equal; loss {loss:.6f}, {precision} differs by {difference:.1e}")
                assert difference < allowed


main(sys.argv[1], sys.argv[2], sys.argv[3:])
