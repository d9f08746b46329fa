"""A host that does not exist: operators take declared times and powers on a virtual clock, and a meter samples it.

What it invents is always labelled simulated. Its truth is kept beside it for ``score`` and tests, never read by an
analysis.
"""
