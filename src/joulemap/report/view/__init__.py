"""Numbers to rows, ready to print: pure. Must not know a terminal, a page or a file."""
