// Vectors like those that a model makes of texts or pictures: of length 1, and in clusters. They
// are made so that a projection to a plane shows the clusters. The same in every run.
import { seededRandom } from '../random.mjs';

const clusters = 24;
const noise = 0.32; // the length of what sets a vector off from its cluster, out of the plane
const rowsPerStep = 2000; // some ms

/**
 * Fills rows of `vectors` in steps: it yields the fraction that is done. It returns the cluster of
 * each row, and the projections of the rows to the plane: x and y of each, from -1 to 1.
 *
 * @param vectors float32 of shape [count, size]
 */
export function* makeVectors(vectors, seed) {
  const {
    data,
    shape: [count, size],
  } = vectors;
  const random = seededRandom(seed);
  const [u, v] = directions(2, size, [], random);
  const centres = directions(clusters, size, [u, v], random);
  const shapes = Array.from({ length: clusters }, (_, i) => shapeOf(i, random));
  const clusterOf = Uint8Array.from({ length: count }, () => Math.floor(clusters * random()));
  const places = new Float32Array(2 * count);
  for (let first = 0; first < count; first += rowsPerStep) {
    for (let i = first; i < Math.min(first + rowsPerStep, count); ++i) {
      const [x, y] = placeIn(shapes[clusterOf[i]], random);
      const row = data.subarray(i * size, (i + 1) * size);
      places.set(fillRow(row, x, y, u, v, centres[clusterOf[i]], random), 2 * i);
    }
    yield Math.min(first + rowsPerStep, count) / count;
  }
  return { clusterOf, places };
}

/**
 * A vector of length 1 near (x, y) in the plane. Its centre gets the rest of the length.
 *
 * @returns its projection to the plane
 */
function fillRow(row, x, y, u, v, centre, random) {
  const rest = Math.sqrt(Math.max(0, 1 - x * x - y * y - noise * noise));
  const spread = noise * Math.sqrt(12 / row.length); // of uniform numbers with that length
  let squares = 0;
  for (let j = 0; j < row.length; ++j) {
    const value = x * u[j] + y * v[j] + rest * centre[j] + spread * (random() - 0.5);
    row[j] = value;
    squares += value * value;
  }
  const factor = 1 / Math.sqrt(squares);
  let [along, across] = [0, 0];
  for (let j = 0; j < row.length; ++j) {
    row[j] *= factor;
    along += row[j] * u[j];
    across += row[j] * v[j];
  }
  return [along, across];
}

// --- the plane -----------------------------------------------------------------------------------

/** Where a cluster is, and how it extends. They are spread like the seeds of a sunflower. */
function shapeOf(cluster, random) {
  const angle = cluster * Math.PI * (3 - Math.sqrt(5));
  const radius = 0.8 * Math.sqrt((cluster + 0.5) / clusters);
  return {
    x: radius * Math.cos(angle),
    y: radius * Math.sin(angle),
    length: 0.05 + 0.02 * random(),
    width: 0.03 + 0.015 * random(),
    turn: Math.PI * random(),
  };
}

/** A point of a cluster: normally distributed, by Box and Muller. */
function placeIn({ x, y, length, width, turn }, random) {
  const radius = Math.sqrt(-2 * Math.log(1 - random()));
  const angle = 2 * Math.PI * random();
  const [along, across] = [length * radius * Math.cos(angle), width * radius * Math.sin(angle)];
  return [
    x + along * Math.cos(turn) - across * Math.sin(turn),
    y + along * Math.sin(turn) + across * Math.cos(turn),
  ];
}

// --- directions ----------------------------------------------------------------------------------

/** Random directions: perpendicular to `others`, and vectors of a plane to each other. */
function directions(count, size, others, random) {
  const made = [];
  for (let i = 0; i < count; ++i) {
    const direction = Float64Array.from({ length: size }, () => random() - 0.5);
    for (const other of [...others, ...made]) {
      const shared = dot(direction, other);
      for (let j = 0; j < size; ++j) direction[j] -= shared * other[j];
    }
    const length = Math.sqrt(dot(direction, direction));
    made.push(direction.map((value) => value / length));
  }
  return made;
}

const dot = (a, b) => a.reduce((sum, value, j) => sum + value * b[j], 0);
