"""Child processes whose time, processor time and peak memory are known when they end."""

import os
import re
import subprocess
import time


class Absent(Exception):
    """A peer, an input or a tool is not there; the message says why."""


class Child:
    def __init__(self, command, **options):
        self.started = time.perf_counter()
        self.process = subprocess.Popen([str(word) for word in command], **options)
        self.status = None

    def wait(self):
        """Waits for the end and returns the exit status, negative for a signal."""
        if self.status is None:
            _, status, usage = os.wait4(self.process.pid, 0)
            self.seconds = time.perf_counter() - self.started
            self.cpu_seconds = usage.ru_utime + usage.ru_stime
            self.peak_bytes = usage.ru_maxrss * 1024
            self.status = self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.status

    def stop(self):
        """Ends the process at once; it must not have been waited for."""
        if self.status is None:
            self.process.kill()
        return self.wait()

    def has_ended(self):
        """Whether it has, leaving its resource usage for wait()."""
        return (
            os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        )


def step_times(command, pattern, skipped, seconds, log, **options):
    """Runs a trainer that prints a line for each step, its milliseconds where `pattern` has its group,
    until the steps after the `skipped` first took so many seconds. Returns (seconds of those, peak
    memory)."""
    times = []
    with open(log, "ab") as errors:
        child = Child(command, stdout=subprocess.PIPE, stderr=errors, text=True, **options)
    for line in child.process.stdout:
        took = re.search(pattern, line)
        if took:
            times.append(float(took[1]) / 1e3)
        if sum(times[skipped:]) >= seconds:
            break
    child.stop()
    if len(times) <= skipped:
        raise Absent(f"it ended early: see {log}")
    return times[skipped:], child.peak_bytes


def run(command, log, **options):
    """Runs a command to its end, its stderr into the file `log`; returns (stdout, child)."""
    with open(log, "ab") as errors:
        child = Child(command, stdout=subprocess.PIPE, stderr=errors, text=True, **options)
        output = child.process.stdout.read()
    if child.wait():
        raise RuntimeError(f"{' '.join(map(str, command))} failed: see {log}")
    return output, child
