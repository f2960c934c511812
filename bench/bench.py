#!/usr/bin/env python3
"""Measures hearth and its peers side by side, in one run: `make bench`, docs/benchmarks.md."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import data
import report
import steps
import workloads
from child import Absent
from claims import build, loader, recipe, startup, threads, tokenizer, training, windows
from claims.claim import absent
from machine import Machine
from peers.venv import Venv
from place import ROOT, Place
from progress import Progress

# Expected seconds of each part by its rounds, from two cores: for each model, and beside them.
EACH = {"steps": lambda n: 110 + 70 * n, "profile": lambda n: 10 + 8 * n, "matmuls": lambda n: 15}
WHOLE = {
    "steps": lambda n: 200 + 220 * n,
    "claims": lambda n: 60 + 100 * n,
    "recipe": lambda n: 1800,
}

PEERS = "pytorch-eager pytorch-compile pytorch-plain llm.c nanochat"


def arguments():
    """Options, each of which may come from the environment as make passes it: MODELS."""
    parser = argparse.ArgumentParser(description=__doc__)

    def option(name, default, text):
        parser.add_argument(f"--{name}", default=os.environ.get(name.upper()) or default, help=text)

    option("build", ROOT / "build", "where hearth and bench's programs are built")
    option("scratch", ROOT / "build-bench", "venv, data, runs")
    option("venv", "", "Python environment of the peers; made in scratch if not given")
    option("shared", ROOT.parent / "shared/data", "texts and tokenizers")
    option("out", ROOT / "bench/results", "where the results go")
    option("models", "", f"MODEL:SEQ_LEN:ROWS ... ({workloads.DEFAULT})")
    option("peers", "", f"which of: {PEERS}")
    option("llmc", "", "checkout of llm.c")
    option("nanochat", "", "checkout of nanochat")
    option("rounds", "", "rounds of each measurement")
    option("parts", "steps profile matmuls claims", "what to measure")
    option("quick", "", "1: one small model and one round, under five minutes")
    options = parser.parse_args()
    options.rounds = int(options.rounds or (1 if options.quick else 3))
    options.models = options.models or (workloads.QUICK if options.quick else workloads.DEFAULT)
    options.peers = options.peers or (
        PEERS.replace(" pytorch-plain", "") if options.quick else PEERS
    )
    options.seconds = 2 if options.quick else 5  # of timed steps in a round
    return options


class Bench:
    def __init__(self, options):
        self.options, self.rounds = options, options.rounds
        self.parts = options.parts.split()
        self.place = Place(options.build, options.scratch, options.shared)
        self.venv = Venv(options.venv or self.place.scratch / "venv", self.place.log)
        self.machine = Machine()
        self.models = workloads.parse(options.models)
        self.progress = Progress(self.expected())
        self.report = {
            "revision": revision(),
            "settings": f"{options.rounds} rounds of {options.seconds} s",
            "results": [],
            "matmuls": [],
            "profiles": [],
            "claims": [],
            "absent": [],
        }

    def expected(self):
        models = sum(EACH[part](self.rounds) for part in self.parts if part in EACH)
        whole = sum(WHOLE[part](self.rounds) for part in self.parts if part in WHOLE)
        return models * len(self.models) + whole

    def steps(self):
        self.progress.part("token shards")
        shards = data.token_shards(self.place)
        checkouts = {"llm.c": self.options.llmc, "nanochat": self.options.nanochat}
        peers = {name: checkouts.get(name) for name in self.options.peers.split()}
        pairs = steps.comparisons(self.place, self.venv, shards, self.models, peers)
        for workload, implementations in pairs:
            if self.options.quick and workload in steps.NOT_QUICK:
                name = implementations[-1].name
                self.report["absent"].append([name, workload.title, "not in a quick run"])
            else:
                rounds = 1 if workload in steps.ONCE else self.rounds
                self.compare(workload, implementations, rounds)

    def compare(self, workload, implementations, rounds):
        self.progress.part(f"training steps: {workload.title}", EACH["steps"](rounds))
        results, missing = steps.measure(
            self.place,
            workload,
            implementations,
            rounds,
            self.options.seconds,
            self.progress,
            self.machine,
        )
        self.report["results"] += results
        self.report["absent"] += missing
        self.write()

    def profile(self):
        for workload in self.models:
            self.progress.part(f"profile: {workload.title}", EACH["profile"](self.rounds))
            self.report["profiles"].append(
                self.place.json(
                    self.place.program("profile"),
                    "--json",
                    "--rounds",
                    self.rounds,
                    *workload.options(),
                )
            )

    def matmuls(self):
        """oneDNN's rates beside those of hearth's profile, shape by shape."""
        profiles = {(p["model"], p["seq_len"]): p["matmuls"] for p in self.report["profiles"]}
        for workload in self.models:
            self.progress.part(f"matmuls: {workload.title}", EACH["matmuls"](self.rounds))
            entry = self.machine.measure_matmuls(self.place, workload)
            rows = profiles.get((workload.model, workload.seq_len), [])
            rates = {shape_key(row): row["flops_per_s"] for row in rows}
            for shape in entry["matmuls"]:
                shape["hearth_flops_per_s"] = rates.get(shape_key(shape), 0)
            self.report["matmuls"].append(entry)

    def claims(self):
        self.progress.part("claims: making a dataset", 60)
        shards = data.token_shards(self.place)
        dataset, lines = build.make_dataset(self.place)
        for name, measure in (
            ("threads", lambda: threads.measure(self.place, shards, self.rounds)),
            ("windows", lambda: windows.measure(self.place, shards, self.rounds)),
            ("start-up", lambda: startup.measure(self.place, dataset, self.rounds)),
            ("data wait", lambda: loader.measure(self.place, shards, self.rounds)),
            ("tokenizers", lambda: tokenizer.measure(self.place, self.venv, self.rounds)),
            ("data build", lambda: build.measure(self.place, lines, self.rounds)),
        ):
            self.progress.part(f"claims: {name}", 16 * self.rounds)
            try:
                self.report["claims"] += measure()
            except (Absent, RuntimeError) as reason:
                self.report["claims"].append(absent(name, reason))

    def recipe(self):
        self.progress.part("nanochat's recipe: training d6 and llamas", 1800)
        try:
            self.report["claims"] += recipe.measure(self.place)
        except (Absent, RuntimeError) as reason:
            self.report["claims"].append(absent("nanochat's recipe", reason))

    def run(self):
        """Every part that was asked for, in this order: the matmuls stand beside the profile."""
        for part in ("steps", "profile", "matmuls", "claims", "recipe"):
            if part in self.parts:
                getattr(self, part)()
        if not self.machine.measured:
            self.machine.measure_peak(self.place, self.models[0], "bf16")
        path, text = self.write()
        print(text)
        self.progress.say(f"written to {path} and .json")

    def write(self):
        """What there is so far, so that a run that ends early has not been in vain."""
        follow = training.claims(self.report["results"], self.report["profiles"])
        versions = {name: self.venv.version(name) for name in ("torch", "tiktoken", "rustbpe")}
        found = {**self.report, "peers": versions, "claims": [*follow, *self.report["claims"]]}
        return report.write(Path(self.options.out), self.machine, found)


def shape_key(row):
    return row["operation"], row["M"], row["N"], row["K"]


def revision():
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=ROOT
    )
    return found.stdout.strip() or "an unknown revision"


if __name__ == "__main__":
    try:
        Bench(arguments()).run()
    except KeyboardInterrupt:
        sys.exit(130)
