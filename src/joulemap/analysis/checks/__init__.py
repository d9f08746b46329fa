"""What a recording says of itself: idle baseline, counter against power, powers that cannot be. No files, no screens."""
