"""PyTorch's training loop, in processes (torch_worker.py) that wait between measurements."""

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from child import Absent, Child
from place import threads
from workloads import SIZES

# glibc keeps and reuses memory in huge pages: up to twice as fast as its defaults
FAST_MALLOC = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 40),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
}


class PyTorch:
    """`name`: pytorch-eager, pytorch-compile, or pytorch-plain: eager with malloc as it is."""

    def __init__(self, name, place, venv, data, tuned):
        self.name, self.place, self.venv, self.data = name, place, venv, data
        self.tuned = tuned  # rows of a micro-batch by (workload, compile): eager and plain share
        self.child, self.peak_bytes, self.dtype = None, 0, "bf16"
        self.device_bytes = 0  # of a GPU's memory

    def open(self, workload):
        self.venv.need("numpy", "torch")
        if self.name == "pytorch-compile" and not any(map(has_compiler, ("g++", "clang++"))):
            raise Absent("torch.compile needs g++")
        layers, dim, heads, ffn = workload.sizes or SIZES[workload.model]
        self.peak_bytes, self.device_bytes, self.parameters = 0, 0, None
        self.spec = {
            "layers": layers,
            "dim": dim,
            "heads": heads,
            "ffn": ffn,
            "vocab": workload.vocab,
            "seq_len": workload.seq_len,
            "rows": workload.rows,
            "threads": threads(),
            "device": workload.device,
            "compile": self.name == "pytorch-compile",
            "data": str(self.data),
        }
        key = workload, self.spec["compile"]
        if key not in self.tuned:
            self.start(tune=True)
            self.tuned[key] = self.answer()["micro_rows"]
            self.child.wait()
            self.child = None
        self.spec["micro_rows"] = self.tuned[key]

    def start(self, tune=False):
        environment = dict(
            os.environ,
            TORCHINDUCTOR_CACHE_DIR=str(self.place.scratch / "inductor"),
            PYTHONWARNINGS="ignore",
            OMP_NUM_THREADS=str(threads()),
        )
        if self.spec["device"] == "cpu":
            environment["CUDA_VISIBLE_DEVICES"] = ""
        if self.name != "pytorch-plain":
            environment.update(FAST_MALLOC)
        worker = Path(__file__).with_name("torch_worker.py")
        with open(self.place.log, "ab") as errors:
            self.child = Child(
                [self.venv.python, worker, json.dumps({**self.spec, "tune": tune})],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
                env=environment,
            )

    def answer(self):
        line = self.child.process.stdout.readline()
        if not line:
            status, self.child = self.child.wait(), None
            raise Absent(f"its process ended with status {status}: see {self.place.log}")
        return json.loads(line)

    def measure(self, seconds):
        if not self.child:
            self.start()
            self.parameters = self.answer()["parameters"]
        times = []
        while sum(times) < seconds:
            with suppress(OSError):  # answer() says so if it has ended
                self.child.process.stdin.write("step\n")
            answer = self.answer()
            times.append(answer["seconds"])
            self.device_bytes = answer["device_bytes"]
        if resident_bytes(self.child.process.pid) > installed_bytes() / 6:
            self.end()  # too large to wait beside the others
        return times

    def end(self):
        if self.child:
            self.child.process.stdin.close()
            self.child.wait()
            self.peak_bytes = max(self.peak_bytes, self.child.peak_bytes)
            self.child = None

    def close(self):
        self.end()
        return self.peak_bytes


def has_compiler(name):
    return any(
        os.access(os.path.join(path, name), os.X_OK) for path in os.environ["PATH"].split(":")
    )


def resident_bytes(pid):
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def installed_bytes():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
