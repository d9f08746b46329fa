"""What live meters declare, and how a capture of them lies on disk."""
