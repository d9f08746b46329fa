"""What a map of a recording is made of and ends in: clocks related, instruments, rows. No arithmetic, no files."""
