"""ONNX graphs: read, named, and without any operator. Needs the package ``onnx``, loaded when asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from joulemap.errors import InputError, SetupError
from joulemap.runtimes.graphs.onnx_names import spare_suffix

__all__ = ["build_bare_graph", "import_onnx", "name_nodes", "read_graph", "serialise"]


def import_onnx() -> Any:
    """Returns the package ``onnx``.

    Raises:
        SetupError: it is not installed (``missing-extra``).
    """
    try:
        import onnx  # noqa: PLC0415  heavy, and an extra
    except ImportError as error:
        raise SetupError("onnx is not installed", hint="pip install 'joulemap[host]'", slug="missing-extra") from error
    return onnx


def read_graph(path: Path, weights: Path | None = None) -> Any:
    """Returns the ``ModelProto`` of a file.

    Args:
        path: of the file.
        weights: folder of the files that hold weights of their own; None for that of the file.

    Raises:
        SetupError: ``onnx`` is not installed (``missing-extra``).
        InputError: the file is missing or no ONNX model (``model-unreadable``).
    """
    onnx = import_onnx()
    try:
        model = onnx.load(str(path), load_external_data=weights is None)
        if weights is not None:
            onnx.load_external_data_for_model(model, str(weights))
    except (OSError, ValueError, RuntimeError, onnx.onnx_cpp2py_export.checker.ValidationError) as error:
        raise _unreadable(path, error) from error
    except Exception as error:
        if type(error).__module__.startswith("google.protobuf"):
            raise _unreadable(path, error) from error
        raise
    if not model.graph.node:
        raise _unreadable(path, ValueError("it holds no node"))
    return model


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"{path.name}: is no ONNX model ({str(error).splitlines()[0] if str(error) else type(error).__name__})",
        hint="give a .onnx file that onnx.load reads",
        slug="model-unreadable",
    )


def name_nodes(model: Any, fed: Sequence[str]) -> list[str]:
    """Gives every node of the main graph a name of its own, in place, and returns the names that they had.

    Args:
        model: changed in place: inputs that nothing feeds any more are taken away too.
        fed: inputs that a caller feeds; what an optimiser has folded away is no input any longer.
    """
    before = []
    for index, node in enumerate(model.graph.node):
        before.append(str(node.name) or (str(node.output[0]) if node.output else ""))
        node.name = f"op{index}"
    kept = [value for value in model.graph.input if value.name in set(fed)]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return before


def build_bare_graph(model: Any, outputs: Sequence[tuple[str, int, tuple[int, ...]]]) -> Any:
    """Returns a model with the same inputs whose outputs are constants: what a call costs without any operator.

    Args:
        model: the real one; not changed.
        outputs: name, ONNX element type and shape of each output; one that is an input too is handed on.
    """
    onnx = import_onnx()
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.node[:]
    del bare.graph.initializer[:]
    del bare.graph.sparse_initializer[:]
    del bare.graph.value_info[:]
    del bare.graph.output[:]
    bare.graph.name = "bare"
    hidden, there = spare_suffix(model), {value.name for value in model.graph.input}
    for name, kind, shape in outputs:
        bare.graph.output.append(onnx.helper.make_tensor_value_info(name, kind, shape))
        if name in there:
            continue
        there.add(name)
        array = _zeros(onnx, kind, shape)
        tensor = onnx.numpy_helper.from_array(array, name=f"{name}{hidden}")
        bare.graph.initializer.append(tensor)
        bare.graph.node.append(onnx.helper.make_node("Identity", [f"{name}{hidden}"], [name], name=f"bare {name}"))
    return bare


def _zeros(onnx: Any, kind: int, shape: tuple[int, ...]) -> Any:
    import numpy as np  # noqa: PLC0415  beside a package that brings it

    if kind == onnx.TensorProto.STRING:
        return np.full(shape, "", object)
    return np.zeros(shape, onnx.helper.tensor_dtype_to_np_dtype(kind))


def serialise(model: Any) -> bytes | None:
    """Returns the model as bytes; None when it is larger than its format can hold in one piece."""
    try:
        return bytes(model.SerializeToString())
    except ValueError:
        return None
