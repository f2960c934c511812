"""The Python environment of the peers: made once, from PyPI."""

import subprocess
import sys
from pathlib import Path

from child import Absent


class Venv:
    def __init__(self, directory, log):
        self.directory, self.log = Path(directory), log
        self.python = self.directory / "bin" / "python"

    def need(self, *packages):
        """Sees to it that packages are there; Absent with pip's last words otherwise."""
        if not self.python.exists():
            self.command(sys.executable, "-m", "venv", self.directory)
        if self.has(packages):
            return
        self.command(
            self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages
        )

    def has(self, packages):
        names = ",".join(packages)
        return (
            subprocess.run([self.python, "-c", f"import {names}"], capture_output=True).returncode
            == 0
        )

    def version(self, package):
        """Empty where it is not installed."""
        if not self.python.exists():
            return ""
        code = f"import importlib.metadata as m; print(m.version('{package}'))"
        return subprocess.run(
            [self.python, "-c", code], capture_output=True, text=True
        ).stdout.strip()

    def command(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        with open(self.log, "a") as log:
            log.write(done.stdout + done.stderr)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise Absent(f"its virtual environment could not be made: {last}")
