"""Records a program's energy: sampling process, command, marks, bundle. It must not know a screen."""
