"""Where things are: the built programs, scratch, inputs."""

import json
import os
import shutil
from pathlib import Path

import child

ROOT = Path(__file__).resolve().parent.parent


class Place:
    def __init__(self, build, scratch, shared):
        self.build, self.scratch, self.shared = Path(build), Path(scratch), Path(shared)
        self.hearth = self.build / "hearth"
        self.log = self.scratch / "log.txt"
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")

    def directory(self, name):
        """An empty directory in scratch."""
        path = self.scratch / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def run(self, *command, **options):
        return child.run(command, self.log, **options)

    def json(self, *command, **options):
        """The JSON that a command prints."""
        return json.loads(self.run(*command, **options)[0])

    def program(self, name):
        return self.build / "bench" / name

    def data(self, name):
        """A file of the shared data."""
        path = self.shared / name
        if not path.exists():
            raise child.Absent(f"{path} is not there (SHARED=DIR says where it is)")
        return path


def threads():
    return len(os.sched_getaffinity(0))


def drop_from_cache(directory):
    """Makes the files of a directory cold: written to disk, then dropped from the page cache."""
    for path in Path(directory).iterdir():
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
