"""The other half of the waist: what a run is, as frozen records.

Import the module of the noun (``joulemap.records.power``). Nothing here reads a file, asks the time or knows a
device; no record is ever changed after it is made.
"""
