"""The wire: the words that firmware and host share, and the parsers of what the firmware prints.

One registry (``vocabulary``) is the source of the C header ``hpx_wire.h`` and of ``docs/wire.md``. Must not know how
bytes travel, which board runs or what a stage does with a record.
"""
