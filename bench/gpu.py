#!/usr/bin/env python3
"""Measures hearth beside PyTorch on a GPU, in one run: see docs/benchmarks.md."""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import data
import gpu_report
import steps
import workloads
from child import Absent
from gpu_machine import GpuMachine
from peers.hearth import Hearth
from peers.pytorch import PyTorch
from place import ROOT, Place
from progress import Progress

MICRO_TOKENS = 16384  # of a micro-batch: enough for any GPU, and PyTorch's whole logits fit
VIEWS = [(2048, -1), (4096, -1), (4096, 512)]
SHAPES = [(T, D, window) for D in (64, 112, 128) for T, window in VIEWS]
TINY_SHAPES = [(32, 16, -1), (32, 16, 8)]

# Seconds that a part takes at most, as far as is known: less is left, and it is skipped.
ATTENTION, COMPARISON, PROFILE = 20, 60, 12


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)

    def option(name, default, text):
        parser.add_argument(f"--{name}", default=os.environ.get(name.upper()) or default, help=text)

    option("build", ROOT / "build", "where hearth and bench's programs are built")
    option("scratch", ROOT / "build-bench", "data, runs, compiled kernels of PyTorch")
    option("out", ROOT / "bench/results", "where the results go")
    option("models", workloads.GPU, "MODEL:SEQ_LEN:ROWS ...")
    option("rounds", 2, "rounds of each measurement")
    option("seconds", 240, "for everything; what does not fit is left out, and named")
    option("revision", "an unknown revision", "of hearth, as the results name it")
    option("device", "cuda", "of hearth")
    option("torch", "cuda", "PyTorch's device")
    option("quick", "", "1: a tiny model and tiny shapes, to try the benchmark itself")
    parser.add_argument("--prepare", action="store_true", help="only compile what PyTorch needs")
    return parser.parse_args()


class Interpreter:
    """The Python that runs this, as the environment of the peers: nothing is installed."""

    python = sys.executable

    def need(self, *packages):
        for package in packages:
            if not self.version(package):
                raise Absent(f"{sys.executable} has no {package}")

    def version(self, package):
        code = f"import importlib.metadata as m; print(m.version('{package}'))"
        found = subprocess.run([self.python, "-c", code], capture_output=True, text=True)
        return found.stdout.strip()


class GpuBench:
    def __init__(self, options):
        self.options, self.ends = options, time.monotonic() + float(options.seconds)
        self.rounds, self.timed_seconds = int(options.rounds), 0.1 if options.quick else 3
        self.place = Place(options.build, options.scratch, ROOT)
        self.interpreter, self.progress = Interpreter(), Progress(0)
        self.machine = GpuMachine(self.place, options.device)
        models = [workloads.TINY] if options.quick else workloads.parse(options.models)
        self.models = [with_micro_batch(on(workload, options.device)) for workload in models]
        vocab = workloads.TINY.vocab if options.quick else 32000
        self.shards = data.token_shards(self.place, vocab)
        self.report = {"results": [], "attention": [], "profiles": [], "absent": []}

    def fits(self, seconds, what):
        if time.monotonic() + (0 if self.options.quick else seconds) <= self.ends:
            return True
        self.report["absent"].append([what, "", "there was no time left"])
        return False

    def pytorch(self):
        """With hearth's micro-batches: to find the fastest would compile for each."""
        tuned = {
            (on(workload, self.options.torch), True): rows_of_micro_batch(workload)
            for workload in self.models
        }
        return PyTorchOn(
            self.options.torch, "pytorch-compile", self.place, self.interpreter, self.shards, tuned
        )

    def prepare(self):
        """Fills the cache of compiled kernels, all models at once."""
        workers = [self.pytorch() for _ in self.models]
        for worker, workload in zip(workers, self.models):
            worker.open(workload)
            worker.start()
        for worker, workload in zip(workers, self.models):
            try:
                worker.answer()
                worker.end()
            except Absent as reason:
                self.progress.say(f"{workload.title}: {reason}")

    # ---- The parts ----

    def attention(self):
        self.progress.part("peaks and attention")
        shapes, size = SHAPES, {"rounds": 10, "tokens": 32768, "width": 2048}
        if self.options.quick:
            shapes, size = TINY_SHAPES, {"rounds": 1, "tokens": 64, "width": 32}
        arguments = [word for name, value in size.items() for word in (f"--{name}", value)]
        arguments += [f"{T}:{D}" if window < 0 else f"{T}:{D}:{window}" for T, D, window in shapes]
        ours = self.machine.measure_shapes(arguments)
        self.report["attention"] = [{"impl": "hearth", **row} for row in ours]
        self.write()
        spec = {"device": self.options.torch, "shapes": shapes, **size}
        try:
            self.interpreter.need("torch")
            theirs = self.place.json(
                sys.executable, ROOT / "bench/peers/torch_attention.py", json.dumps(spec)
            )
        except (Absent, RuntimeError) as reason:
            self.report["absent"].append(["pytorch", "attention", str(reason)])
            return
        for row, other in zip(ours, theirs):
            if other:
                self.report["attention"].append({**row, **other, "impl": "pytorch"})

    def compare(self, workload):
        self.progress.part(f"training steps: {workload.title}")
        results, missing = steps.measure(
            self.place,
            workload,
            [Hearth(self.place, self.shards), self.pytorch()],
            self.rounds,
            self.timed_seconds,
            self.progress,
            self.machine,
        )
        self.report["results"] += results
        self.report["absent"] += missing

    def profile(self, workload):
        self.progress.part(f"profile: {workload.title}")
        found = self.place.json(
            self.place.program("profile"), "--json", "--rounds", 3, *workload.options()
        )
        self.report["profiles"].append({**found, "model": workload.name or workload.model})

    def run(self):
        parts = [(ATTENTION, "attention", self.attention)]
        for seconds, part in (COMPARISON, self.compare), (PROFILE, self.profile):
            parts += [(seconds, w.title, partial(part, w)) for w in self.models]
        self.machine.measure_shapes([])  # nothing is written where this fails
        failed = False
        for seconds, name, part in parts:
            if not self.fits(seconds, name):
                continue
            try:
                part()
            except RuntimeError as reason:
                self.report["absent"].append([name, "", str(reason)])
                failed = True
            text = self.write()
        print(text)
        failed |= any(name == Hearth.name for name, *_ in self.report["absent"])
        return 1 if failed else 0

    def write(self):
        """What there is so far, so that a run that ends early has not been in vain."""
        settings = f"{self.rounds} rounds of {self.timed_seconds} s"
        versions = {"torch": self.interpreter.version("torch")}
        about = {"revision": self.options.revision, "settings": settings, "peers": versions}
        return gpu_report.write(Path(self.options.out), self.machine, {**about, **self.report})


class PyTorchOn(PyTorch):
    """On a device of its own: to try the benchmark where PyTorch has no GPU."""

    def __init__(self, device, *arguments):
        super().__init__(*arguments)
        self.device = device

    def open(self, workload):
        super().open(on(workload, self.device))


def on(workload, device):
    return replace(workload, device=device)


def rows_of_micro_batch(workload):
    most = max(1, MICRO_TOKENS // workload.seq_len)
    return max(r for r in range(1, workload.rows + 1) if workload.rows % r == 0 and r <= most)


def with_micro_batch(workload):
    """The same for hearth as for PyTorch, so that their memory can be compared."""
    given = ("--micro-batch", rows_of_micro_batch(workload))
    return replace(workload, changes=(*workload.changes, *given))


if __name__ == "__main__":
    try:
        options = arguments()
        bench = GpuBench(options)
        sys.exit(bench.prepare() if options.prepare else bench.run())
    except KeyboardInterrupt:
        sys.exit(130)
    except (Absent, RuntimeError) as reason:
        sys.exit(f"gpu.py: {reason}")
