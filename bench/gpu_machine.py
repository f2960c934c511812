"""The GPU: what it is, and what it can do (gpu.c), measured all through the run."""

import re
import subprocess
import time

from machine import Machine

QUERY = {
    "driver": "driver_version",
    "power_limit": "power.limit",
    "clock_now": "clocks.sm",
    "clock_most": "clocks.max.sm",
    "temperature": "temperature.gpu",
}


class GpuMachine(Machine):
    FRESH = 20  # seconds that a peak counts for

    def __init__(self, place, device):
        super().__init__()
        self.place, self.device, self.name, self.measured_at = place, device, "", 0
        self.peak = 0

    def measure_peak(self, place, workload, dtype):
        if time.monotonic() - self.measured_at > self.FRESH or not self.peak:
            self.measure_shapes([])
        return self.peak

    def measure_shapes(self, arguments):
        """The peaks; returns attention's rates at the shapes among the arguments."""
        found = self.place.json(self.place.program("gpu"), "--device", self.device, *arguments)
        self.name, self.measured_at = found["device"], time.monotonic()
        self.peak = found["bf16_flops_per_s"]
        self.keep(found)
        self.measured["memory_bytes_of_gpu"] = found["memory_bytes"]
        return found["attention"]

    def description(self):
        return {"gpu": self.name, **self.nvidia_smi(), **super().description()}

    def nvidia_smi(self):
        """What nvidia-smi says, where there is one."""
        try:
            found = subprocess.run(
                ["nvidia-smi", f"--query-gpu={','.join(QUERY.values())}", "--format=csv,noheader"],
                capture_output=True,
                text=True,
                timeout=10,
            ).stdout.splitlines()
        except (OSError, subprocess.TimeoutExpired):
            return {}
        return dict(zip(QUERY, found[0].split(", "))) if found else {}

    def slug(self):
        return re.sub(r"[^a-z0-9]+", "-", (self.name or "unknown gpu").lower()).strip("-")
