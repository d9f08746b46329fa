"""One file per live meter, in rooms by where the meter sits. They never import each other: the registry names them."""
