"""The shared ground of the readers: bytes to text, text to values, values to traces and slices.

Knows no format by name; every reader may stand on it, and it on no reader.
"""
