"""What the command line adds for runs on this machine; it must not know a runtime or a meter."""
