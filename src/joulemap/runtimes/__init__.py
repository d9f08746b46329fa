"""Inference runtimes of this machine behind one Protocol, and a simulated one whose truth is known.

A runtime loads a model, says which operators it executes, and runs it; where it can it profiles them and executes some
of them several times in place. It must not know a meter, a window, an uncertainty or a screen.
"""
