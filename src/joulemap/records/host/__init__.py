"""What a run of a model on this very machine is made of. No file, no process, no runtime."""
