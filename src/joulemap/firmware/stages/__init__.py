"""The pipeline's stages up to the reconciled power run: each a function from one typed context to the next.

The runner and the stage list live in ``workflow``. Must not know how energy is attributed, shown or saved.
"""
