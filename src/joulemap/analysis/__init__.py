"""What the records mean: energy per inference and per layer, each with its uncertainty. Records in, records out.

Entry point: ``joulemap.analysis.attribute.account_energy``. Nothing here reads a file, a clock, a device, a random
source without a seed, or the truth of a simulation.
"""
