"""``profile --target host``: meters and runtimes of this machine joined into one bundle. It must not know a screen."""
