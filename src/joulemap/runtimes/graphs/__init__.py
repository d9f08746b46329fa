"""What runtimes share: how many multiply-accumulates an operator does, and graphs with operators repeated in place."""
