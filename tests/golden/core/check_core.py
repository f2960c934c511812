"""Compares `hearth eval --core` with nanochat's own evaluation of the same checkpoint, example by example.

    hearth eval --checkpoint CHECKPOINT --core BUNDLE --precision fp32 --core-details DETAILS [--max-per-task N]
    python3 check_core.py NANOCHAT CHECKPOINT BUNDLE DETAILS

NANOCHAT is a copy of github.com/karpathy/nanochat. Needs torch, jinja2, PyYAML, safetensors and tokenizers; for a
checkpoint of a llama also transformers. Ends with 1 when an example is judged differently.
"""
import collections
import json
import math
import os
import random
import sys

os.environ["NANOCHAT_DTYPE"] = "float32"
nanochat, checkpoint, bundle, details = sys.argv[1:]
sys.path.insert(0, nanochat)
import torch  # noqa: E402
import yaml  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from tokenizers import Tokenizer as HuggingFaceTokenizer  # noqa: E402
from nanochat import core_eval  # noqa: E402
from nanochat.gpt import GPT, GPTConfig  # noqa: E402

SEPARATORS = ("<|bos|>", "<|endoftext|>", "<|begin_of_text|>", "<s>")
CONTEXTS = 10


class Tokenizer:
    """With the calls that core_eval makes; special tokens in text are text."""

    def __init__(self, directory):
        self.inner = HuggingFaceTokenizer.from_file(os.path.join(directory, "tokenizer.json"))
        self.inner.encode_special_tokens = True
        self.separator = next(id for id in map(self.inner.token_to_id, SEPARATORS) if id is not None)

    def get_bos_token_id(self):
        return self.separator

    def __call__(self, prompts, prepend):
        return [[prepend] + self.inner.encode(prompt, add_special_tokens=False).ids for prompt in prompts]


def load_model(directory):
    with open(os.path.join(directory, "config.json")) as file:
        config = json.load(file)
    if "n_layer" not in config:
        from transformers import AutoModelForCausalLM
        llama = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
        model = lambda ids: llama(ids).logits  # noqa: E731
        model.max_seq_len = CONTEXTS * config["max_position_embeddings"]
        return model
    names = GPTConfig.__dataclass_fields__
    model = GPT(GPTConfig(**{name: value for name, value in config.items() if name in names}))
    model.init_weights()
    model.load_state_dict(load_file(os.path.join(directory, "model.safetensors")))
    model.max_seq_len = CONTEXTS * config["sequence_len"]  # beyond which it would stop with an error
    return model.float().eval()


losses = []
inner_forward = core_eval.forward_model


def forward_model(model, input_ids):
    losses.append(inner_forward(model, input_ids))
    return losses[-1]


core_eval.forward_model = forward_model

torch.set_num_threads(int(os.environ.get("THREADS", "2")))
tokenizer, model = Tokenizer(checkpoint), load_model(checkpoint)
with open(os.path.join(bundle, "core.yaml"), encoding="utf-8") as file:
    tasks = {task["label"]: task for task in yaml.safe_load(file)["icl_tasks"]}
ours = collections.defaultdict(list)
with open(details, encoding="utf-8") as file:
    for line in file:
        outcome = json.loads(line)
        ours[outcome["task"]].append(outcome)

different = 0
for label, outcomes in ours.items():
    task = tasks[label]
    with open(os.path.join(bundle, "eval_data", task["dataset_uri"]), encoding="utf-8") as file:
        data = [json.loads(line.strip()) for line in file]
    random.Random(1337).shuffle(data)
    data = data[:len(outcomes)]
    meta = {"task_type": task["icl_task_type"], "num_fewshot": task["num_fewshot"][0],
            "continuation_delimiter": task.get("continuation_delimiter", " ")}
    wrong, longest, correct = [], 0, 0
    for index, outcome in enumerate(outcomes):
        losses.clear()
        judged = bool(core_eval.evaluate_example(index, model, tokenizer, data, "cpu", meta))
        longest = max(longest, losses[0][0].shape[1])
        correct += judged
        if judged != outcome["correct"]:
            wrong.append((index, outcome["losses"]))
    different += len(wrong)
    print(f"{label:34} {len(outcomes):6} examples, {correct:6} correct, {len(wrong):4} judged differently, longest "
          f"prompt {longest} tokens", *wrong[:3], flush=True)
print(f"{different} of {sum(map(len, ours.values()))} judged differently")
sys.exit(different > 0)
