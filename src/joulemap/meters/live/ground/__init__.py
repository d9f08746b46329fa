"""What drivers of live meters share: files of the kernel, option texts, power functions. Must not know any driver."""
