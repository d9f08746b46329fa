"""One file per power meter. A driver knows its device and the records it fills; it never imports another driver."""
