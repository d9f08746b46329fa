"""Recordings from files to a bundle, a map and other tools. It must not know a screen."""
