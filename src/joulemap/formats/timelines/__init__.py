"""What ran when: traces and profiles of runtimes."""
