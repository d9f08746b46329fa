"""The virtual Cortex-M33: a board program of its own, its client, and the power model behind its rail.

``worker.py`` is started as a process and imported by nothing. Must not know engines, stages or analysis.
"""
