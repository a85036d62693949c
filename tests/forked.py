"""Short programs, each in a process of its own, without starting an interpreter for each.

One process imports the library, and nothing else that is costly; every program then runs in a fork
of it. What a program imports, changes or leaves behind is lost with its fork, as in a process
started afresh. Tests of the interpreter's own start, of its options or of imports of the library
start one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tiny_experiments import with_tests_on_the_path

SERVER = """
import json, os, sys, tempfile, traceback
import brmdp

def run(asked):
    os.chdir(asked["cwd"])
    os.environ.update(asked["env"])
    sys.path[:0] = asked["paths"]
    sys.argv[:] = ["-c", *asked["arguments"]]
    code = 0
    try:
        exec(compile(asked["code"], "<program>", "exec"), {"__name__": "__main__"})
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

for line in sys.stdin:
    with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            run(json.loads(line))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    print(json.dumps([status, *texts]), flush=True)
"""


class Forks:
    """Runs programs in forks of a process that has imported the library."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-B", "-c", SERVER],
            env=with_tests_on_the_path(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()

    def run(
        self,
        code: str,
        *arguments: Any,
        paths: Sequence[Any] = (),
        cwd: Any = ".",
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program with arguments; ``paths`` come first on its path."""
        asked = {
            "code": code,
            "arguments": [str(one) for one in arguments],
            "paths": [str(one) for one in paths],
            "cwd": str(cwd),
            "env": dict(env or {}),
        }
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "the process that forks has ended"
        return subprocess.CompletedProcess(["-c"], *json.loads(answer))
