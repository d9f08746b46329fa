"""What a recording says of itself: idle baseline, counter against power, impossible power. No files."""
