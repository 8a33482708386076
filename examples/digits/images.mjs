// What an image of a digit is, for Node and for browsers: nothing here reads files.

export const side = 28;
export const pixels = side * side;
export const classes = 10;

/** The shuffle of Fisher and Yates. */
export function shuffle(array, random) {
  for (let i = array.length - 1; i > 0; --i) {
    const j = Math.floor(random() * (i + 1));
    [array[i], array[j]] = [array[j], array[i]];
  }
}

/**
 * Moves a digit by up to a pixel in each direction. It stays the same digit, but the network cannot
 * learn single pixels by heart. The rim of every image is empty, so a move is an offset to read at.
 */
export function shifted(images, row, random) {
  const move = () => Math.floor(3 * random()) - 1;
  const start = Math.min(
    Math.max(0, row * pixels + move() * side + move()),
    images.length - pixels,
  );
  return images.subarray(start, start + pixels);
}
