"""Sections of a bundle that hold a recording: lanes, markers, what a published rule needs, and the list of it all.

One module per kind of section; ``formats.registry`` alone names them. They must not know a reader.
"""
