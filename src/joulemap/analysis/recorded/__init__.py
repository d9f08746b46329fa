"""Energy of recorded runs: gross and above idle, with intervals over repeats. It must not know a process or a meter."""
