// The live part of the home page: many vectors, and the nearest of a place among them. A vector has
// a place on the map, and its elements are waves over the map. So the cosine of two vectors falls
// with their distance, and the nearest vectors are the nearest points.
//   from the page   { place: [x, y] }, from 0 to 1
//   to the page     { pixels, side, places } once, then { nearest, place, ms } per message
import { createGemm } from 'wgemm';
import { createIndex } from 'wgemm/search';

const [count, dimensions, clusters] = [100_000, 32, 48];
const nearestCount = 300; // fewer would lie under the mark
const side = 640; // pixels of the map
const steps = 5000; // vectors at a time

/** Random numbers from 0 to 1, the same for every visitor. */
let state = 7;
function random() {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32;
}

/** A number around 0, near the normal distribution. */
const normal = () => random() + random() + random() + random() - 2;

const waves = Array.from({ length: dimensions }, () => ({
  x: 9 * normal(),
  y: 9 * normal(),
  phase: 2 * Math.PI * random(),
}));

/** Writes the vector of a place. */
function writeVector(out, at, x, y) {
  for (let i = 0; i < dimensions; ++i)
    out[at + i] = Math.cos(waves[i].x * x + waves[i].y * y + waves[i].phase);
}

/** Clusters that fill a disc. */
function makePlaces() {
  const places = new Float32Array(2 * count);
  const clusterOf = new Uint8Array(count);
  const centers = Array.from({ length: clusters }, (_, i) => {
    const [radius, angle] = [0.4 * Math.sqrt((i + 0.5) / clusters), 2.39996 * i];
    return { x: 0.5 + radius * Math.cos(angle), y: 0.5 + radius * Math.sin(angle) };
  });
  for (let i = 0; i < count; ++i) {
    const cluster = Math.floor(clusters * random());
    const { x, y } = centers[cluster];
    clusterOf[i] = cluster;
    places[2 * i] = Math.min(0.99, Math.max(0.01, x + 0.045 * normal()));
    places[2 * i + 1] = Math.min(0.99, Math.max(0.01, y + 0.045 * normal()));
  }
  return { places, clusterOf };
}

/** A colour that shows on light and on dark pages. */
function colorOf(cluster) {
  const hue = (160 + 47 * (cluster % 5) + 9 * (cluster % 7)) % 360;
  const [saturation, lightness] = [0.55, 0.5];
  return [0, 8, 4].map((n) => {
    const k = (n + hue / 30) % 12;
    const reach = saturation * Math.min(lightness, 1 - lightness);
    return Math.round(255 * (lightness - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  });
}

function draw({ places, clusterOf }) {
  const pixels = new Uint8ClampedArray(4 * side * side);
  const colors = Array.from({ length: clusters }, (_, cluster) => colorOf(cluster));
  for (let i = 0; i < count; ++i) {
    const at = 4 * (Math.floor(places[2 * i + 1] * side) * side + Math.floor(places[2 * i] * side));
    pixels.set(colors[clusterOf[i]], at);
    pixels[at + 3] += (255 - pixels[at + 3]) * 0.6;
  }
  return pixels;
}

async function start() {
  const index = createIndex(await createGemm(), { dimensions, capacity: count });
  const made = makePlaces();
  const block = new Float32Array(steps * dimensions);
  for (let first = 0; first < count; first += steps) {
    for (let i = 0; i < steps; ++i) {
      const [x, y] = made.places.subarray(2 * (first + i), 2 * (first + i) + 2);
      writeVector(block, i * dimensions, x, y);
    }
    index.add(block);
  }
  // The same arrays for each search: while the place moves, a search makes no object.
  const query = new Float32Array(dimensions);
  const out = {
    positions: new Uint32Array(nearestCount),
    scores: new Float32Array(nearestCount),
  };
  onmessage = ({ data: { place } }) => {
    writeVector(query, 0, ...place);
    const begin = performance.now();
    index.search(query, nearestCount, { out });
    const ms = performance.now() - begin;
    postMessage({ nearest: out.positions, place, ms });
  };
  const pixels = draw(made);
  const { places } = made;
  postMessage({ pixels, side, places }, [pixels.buffer, places.buffer]);
}

start().catch(({ message }) => postMessage({ lack: message }));
