"""Engine ``aot``: reads int8 ``.tflite``, plans the arena and writes C. Must not know boards, toolchains or stages."""

from joulemap.firmware.engines.aot.engine import AotEngine

__all__ = ["AotEngine"]
