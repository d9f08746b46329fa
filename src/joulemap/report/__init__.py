"""What the eye sees: ``view`` turns numbers into rows, ``console`` rows into text.

Reads bundles and records only. Must not know a meter, a board, an engine or the workflow.
"""
