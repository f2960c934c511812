"""The machine: what it is, and what it can do (machine.c), measured all through the run."""

import os
import platform
import re
import subprocess
from pathlib import Path

from place import threads


class Machine:
    def __init__(self):
        self.measured = {}  # the best of the whole run: whatever else runs only ever slows it

    def measure_peak(self, place, workload, dtype):
        """What the machine can do now: its clock differs from minute to minute."""
        found = place.json(
            place.program("machine"), "--rounds", 1, "--no-matmuls", *workload.options()
        )
        self.keep(found)
        return found[f"{dtype}_flops_per_s"]

    def measure_matmuls(self, place, workload):
        found = place.json(place.program("machine"), "--rounds", 3, *workload.options())
        self.keep(found)
        return {
            "model": workload.model,
            "seq_len": workload.seq_len,
            "matmuls": found["matmuls"],
            "absent": found.get("onednn_absent"),
        }

    def keep(self, found):
        for name, value in found.items():
            if isinstance(value, float):
                self.measured[name] = max(value, self.measured.get(name, 0))

    def description(self):
        cpu = Path("/proc/cpuinfo").read_text()
        model = re.search(r"model name\s*: (.*)", cpu) or re.search(r"(?i)cpu part\s*: (.*)", cpu)
        flags = set(re.search(r"(?i)(?:flags|features)\s*: (.*)", cpu)[1].split())
        return {
            "cpu": model[1] if model else platform.machine(),
            "threads": threads(),
            "vector_units": sorted(
                flags & {"avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16"}
            ),
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            "huge_pages": read("/sys/kernel/mm/transparent_hugepage/enabled"),
            "kernel": platform.release(),
            "libc": " ".join(platform.libc_ver()),
            "compiler": subprocess.run(
                ["cc", "--version"], capture_output=True, text=True
            ).stdout.split("\n")[0],
            **self.measured,
        }

    def slug(self):
        description = self.description()
        return re.sub(
            r"[^a-z0-9]+", "-", f"{description['cpu']} {description['threads']} threads".lower()
        ).strip("-")


def read(path):
    return Path(path).read_text().strip() if Path(path).exists() else ""
