"""Live power and energy for people and for other programs. It must not know a screen."""
