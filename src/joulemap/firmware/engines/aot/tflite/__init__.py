"""The ``.tflite`` file format: bounds check, reader into plain records, writer. Must not know kernels or C."""
