"""Power meters behind one Protocol with declared capabilities, one driver each.

Must not know firmware, analysis or a screen; drivers never import each other: the registry alone names them.
"""
