# SPDX-License-Identifier: Apache-2.0
"""What server.py and trainer.py share: one JSON object a line in, one a line out, until stdin ends.

stdout belongs to the answers alone: whatever else is printed in the process goes to stderr.
"""
import json
import os
import select
import sys
import time
import traceback

import torch

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
commands = os.fdopen(os.dup(0), "rb")
device = "cuda" if torch.cuda.is_available() else "cpu"


def answer(**fields):
    answers.write(json.dumps(fields) + "\n")


def read():
    """The next command; None at the end. The harness sends one only when the last was answered, so that nothing
    of the next is left in the buffer, where asked() would not see it."""
    line = commands.readline()
    return json.loads(line) if line else None


def asked():
    """Whether a command waits to be read."""
    return bool(select.select([commands], [], [], 0)[0])


def synchronize():
    if device == "cuda":
        torch.cuda.synchronize()


def serve(handlers):
    """Answers {"do": NAME, ...} by handlers[NAME](**rest); an exception is an answer, too."""
    torch.manual_seed(0)
    answer(ok=True, ready=time.monotonic(), device=torch.cuda.get_device_name() if device == "cuda" else "cpu")
    while (command := read()) is not None:
        try:
            answer(ok=True, **handlers[command.pop("do")](**command))
        except Exception as problem:  # the harness writes it down and goes on
            traceback.print_exc()
            answer(ok=False, error="%s: %s" % (type(problem).__name__, str(problem).split("\n")[0][:300]))
