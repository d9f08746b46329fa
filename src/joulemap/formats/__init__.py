"""Files: the bundle with its typed sections, and readers of other people's recordings. Bytes in, records out.

One file per format; two registries alone name them (``registry`` for bundle sections, ``readers`` for recordings).
Readers trust nothing that they read and never import each other, only the shared ground (``json_text``, ``parquet``,
``text``, ``values``, ``building``). Must not know a meter, firmware, an analysis or a screen.
"""
