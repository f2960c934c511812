"""hearth itself, through the program that people run."""

import json
import time

from child import Child

WARM_UP = 1  # steps of a run that are not counted


def train(place, data, options, enough, name="run", look=0.25):
    """Starts `hearth train` and ends it when enough(steps so far); returns (steps, child). A step
    is its line of log.jsonl with `at`, the seconds since the start when it was seen: every `look`
    seconds, seldom, as looking takes time from all its threads."""
    directory = place.directory(name)
    log = directory / "log.jsonl"
    command = [
        place.hearth,
        "train",
        "--data",
        data,
        "--run-dir",
        directory,
        "--steps",
        100000,
        "--warmup",
        100,
        "--eval-every",
        0,
        "--checkpoint-interval",
        0,
        *options,
    ]
    with open(place.log, "ab") as errors:
        child = Child(command, stdout=errors, stderr=errors)
    steps, read = [], 0
    while not enough(steps):
        time.sleep(look)
        lines = log.read_text().split("\n")[:-1] if log.exists() else []
        for line in map(json.loads, lines[read:]):
            if "step_ms" in line:
                steps.append({**line, "at": time.perf_counter() - child.started})
        read = len(lines)
        if child.has_ended():
            child.wait()
            raise RuntimeError(f"hearth train ended early: see {place.log}")
    child.stop()
    return steps, child


def timed(steps, seconds):
    """Whether the steps after the warm-up took at least so long."""
    return sum(step["step_ms"] for step in steps[WARM_UP:]) >= 1e3 * seconds


class Hearth:
    name = "hearth"

    def __init__(self, place, data):
        self.place, self.data, self.peak_bytes = place, data, 0
        self.device_bytes = 0  # of a GPU's memory

    def open(self, workload):
        self.options, self.dtype = workload.options(), workload.dtype
        self.on_gpu, self.device_bytes = workload.device != "cpu", 0

    def measure(self, seconds):
        """Seconds of each step of a fresh run that counts."""
        steps, child = train(
            self.place, self.data, self.options, lambda steps: timed(steps, seconds)
        )
        self.peak_bytes = max(self.peak_bytes, child.peak_bytes)
        if self.on_gpu:
            self.device_bytes = steps[-1]["mem_bytes"]
        return [step["step_ms"] / 1e3 for step in steps[WARM_UP:]]

    def close(self):
        return self.peak_bytes


class HearthFp32(Hearth):
    """The same in fp32, beside a peer that has no other precision."""

    def open(self, workload):
        super().open(workload)
        self.options += ["--precision", "fp32"]
        self.dtype = "fp32"
