// Changes of a file that fit any format.

/** `bytes` with others in place of the run from `at` up to `end`. */
export const splice = (bytes, at, end, ...others) =>
  Uint8Array.of(...bytes.subarray(0, at), ...others, ...bytes.subarray(end));

/** They cut the file at a run, remove the run, repeat it, or replace it by another. */
export const changesOfRuns = [
  (random, bytes, at) => bytes.slice(0, at),
  (random, bytes, at, end) => splice(bytes, at, end),
  (random, bytes, at, end) => {
    const run = bytes.subarray(at, end);
    return splice(bytes, at, end, ...run, ...run);
  },
  (random, bytes, at, end) => {
    const from = random.upTo(bytes.length - 1);
    return splice(bytes, at, end, ...bytes.subarray(from, from + random.upTo(40)));
  },
];
