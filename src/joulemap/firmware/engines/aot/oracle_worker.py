"""A program of its own that runs one inference of the oracle; started by ``oracle.py``, never imported.

The interpreter trusts its file: a model that it does not expect may end the process. In a process of its own that is an
error like any other. Standard input: one line of JSON (``model_b``, ``arena_b``, ``inputs`` with dtype and shape), then
the model and the inputs, raw. Standard output: the outputs, raw. What the interpreter says goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np
from tflite_micro.python.tflite_micro import runtime


def main() -> None:
    """Reads the request, runs it and writes the outputs."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answer
    header = json.loads(sys.stdin.buffer.readline())
    interpreter = runtime.Interpreter.from_bytes(sys.stdin.buffer.read(header["model_b"]), arena_size=header["arena_b"])
    for position, spec in enumerate(header["inputs"]):
        dtype, shape = np.dtype(spec["dtype"]), tuple(spec["shape"])
        content = sys.stdin.buffer.read(dtype.itemsize * int(np.prod(shape)))
        interpreter.set_input(np.frombuffer(content, dtype).reshape(shape), position)
    interpreter.invoke()
    for position in range(header["outputs"]):
        answer.write(interpreter.get_output(position).tobytes())
    answer.close()


if __name__ == "__main__":
    main()
