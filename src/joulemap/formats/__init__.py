"""Files: the bundle with its typed sections, one module per format, and the registry that alone names them.

Readers trust nothing that they read. Must not know a meter, firmware, an analysis or a screen; formats never import
each other, only the ground under them (``json_text``, ``parquet``).
"""
