// Names that fit: the whole one, else what tells it apart from its neighbours, else nothing.

/** `#4` of `CONV_2D #4`, `g1` of `g1: RESHAPE + ADD`; empty for a name that has no such part. */
export function shortName(name) {
  const number = /#[^\s#]+$/.exec(name);
  if (number) return number[0];
  const colon = name.indexOf(': ');
  return colon > 0 ? name.slice(0, colon) : '';
}
