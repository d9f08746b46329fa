"""Clocks related by what they both saw: offset, drift, and how well both are known. It must not read a clock itself."""
