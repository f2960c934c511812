"""Writes prompts.json: what nanochat makes of examples, as text.

    python3 make_prompts.py NANOCHAT DIR > prompts.json

NANOCHAT is a copy of github.com/karpathy/nanochat, DIR has files of CORE's bundle and
dclm_mmlu_and_lowvar.yaml, which lists tasks; it needs torch, jinja2 and PyYAML. `lines` are data files of hostile
examples, `cases` which of them is asked after which others, `tasks` those of DIR, of which the first EXAMPLES are
asked. Prompts are given by their SHA-256.
"""
import hashlib
import json
import os
import random
import sys

nanochat, shared = sys.argv[1:]
sys.path.insert(0, nanochat)
from nanochat import core_eval  # noqa: E402

EXAMPLES = 100
RENDER = {
    "multiple_choice": core_eval.render_prompts_mc,
    "schema": core_eval.render_prompts_schema,
    "language_modeling": core_eval.render_prompts_lm,
}
# All that str.isspace() says yes to, and what is near to it.
SPACES = "".join(chr(c) for c in range(0x110000) if chr(c).isspace())
NEAR = "\u200b\u2060\ufeff\u180e\x00\x08\x0e\x1b\x7f\x84\x86\u2027\u202a\u3001\u0130"

WORDS = ["plain", "  led by blanks", "followed \t\n", "\u3000\u2003wide\u00a0\x85", "caf\u00e9 \u00e9\u4e2d\U0001f600",
         SPACES, SPACES + "x" + SPACES, NEAR, SPACES + NEAR + SPACES, "", " ", "{{ item.query }}{% for x in y %}",
         "a<b & 'c' \"d\"", "back\\slash\r\nline", "ends with a quote\"", "\x1c\x1d\x1e\x1f.\x1c\x1d\x1e\x1f"]


def hostile(type):
    """Every word as context and as answer."""
    items = []
    for i, word in enumerate(WORDS):
        other, third = WORDS[(i + 3) % len(WORDS)], WORDS[(i + 7) % len(WORDS)]
        if type == "multiple_choice":
            items.append({"query": word, "choices": [other, third, word], "gold": i % 3})
        elif type == "schema":
            items.append({"context_options": [word, other], "continuation": third, "gold": i % 2, "more": [{}, None]})
        else:
            items.append({"context": word, "continuation": other, "category": "none"})
    return items


def sha256(prompts):
    """Of the prompts, a zero byte behind each."""
    return hashlib.sha256(b"".join(prompt.encode("utf-8") + b"\0" for prompt in prompts)).hexdigest()


def cases():
    for type in RENDER:
        items = hostile(type)
        for delimiter in (" ", "\nAnswer: ", "", "\u2003"):
            for index in range(len(items)):
                shots = [(index + step) % len(items) for step in (1, 5, 6)[:index % 4]]
                prompts = RENDER[type](items[index], delimiter, [items[i] for i in shots])
                yield {"type": type, "delimiter": delimiter, "index": index, "shots": shots,
                       "sha256": sha256(prompts)}


def read(path):
    with open(os.path.join(shared, path), encoding="utf-8") as file:
        return [json.loads(line.strip()) for line in file]


def digest(data, type, shots, delimiter):
    random.Random(1337).shuffle(data)
    data = data[:EXAMPLES]
    prompts = []
    for index, item in enumerate(data):
        others = [i for i in range(len(data)) if i != index]
        chosen = random.Random(1234 + index).sample(others, shots)
        prompts += RENDER[type](item, delimiter, [data[i] for i in chosen])
    return {"type": type, "shots": shots, "delimiter": delimiter, "sha256": sha256(prompts)}


def tasks():
    import yaml
    with open(os.path.join(shared, "dclm_mmlu_and_lowvar.yaml")) as file:
        listed = yaml.safe_load(file)["icl_tasks"]
    for task in listed:
        path = task["dataset_uri"].replace("local_data", "eval_data")
        if os.path.exists(os.path.join(shared, path)):
            yield dict(digest(read(path), task["icl_task_type"], task["num_fewshot"][0],
                              task.get("continuation_delimiter", " ")), data=path)
    for name, type in (("hellaswag", "multiple_choice"), ("piqa", "multiple_choice"), ("winograd", "schema"),
                       ("lambada", "language_modeling")):
        path = "format_goldens/%s_small.jsonl" % name
        yield dict(digest(read(path), type, 2, "\nAnswer: "), data=path)


lines = {type: [json.dumps(item, ensure_ascii=i % 2 == 0) for i, item in enumerate(hostile(type))] for type in RENDER}
print('{"examples": %d, "lines": %s,' % (EXAMPLES, json.dumps(lines)))
for key, rows in (("cases", list(cases())), ("tasks", list(tasks()))):
    print('"%s": [\n%s\n]%s' % (key, ",\n".join(json.dumps(row) for row in rows), "," if key == "cases" else "}"))
