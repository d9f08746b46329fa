"""What the page and the terminal say of a run on this machine beyond a board's; nothing here measures."""
