"""One module per family of ops: an operator of the graph in, a kernel call out. Siblings never import each other."""
