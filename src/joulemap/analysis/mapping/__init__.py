"""From a trace and a timeline on its clock to an energy map. It must not know files, bundles or screens."""
