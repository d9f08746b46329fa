"""Cross compilers, cached by content. A toolchain takes a core, never a board."""
