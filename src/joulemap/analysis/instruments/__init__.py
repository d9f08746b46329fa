"""What instruments are known to be good for, as data with sources. It must not know a driver or a file."""
