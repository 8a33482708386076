// Changes models: their fields before they are encoded, or their bytes.
import { encodeProto, modelProto } from '../peers/onnx-model.mjs';
import { corpus } from './onnx-corpus.mjs';
import { Random } from './random.mjs';
import { changesOfRuns, splice } from './runs.mjs';

/** Whole numbers at which something may go wrong. */
const numbers = [
  ...[0, 1, 2, 3, 5, 7, 13, 16, 64, 127, 128, 255, 256, 1000, 65536],
  ...[2 ** 20, 2 ** 24, 2 ** 30, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 40],
  ...[-1, -2, -3, -128, -(2 ** 31)],
];
const wide = [2n ** 53n, 2n ** 62n, 2n ** 63n - 1n, -(2n ** 63n)];
const reals = [0, -0, 1, -1, 0.5, 1e-45, 3.4e38, 1e300, Infinity, -Infinity, NaN];
const texts = ['', 'x', 'y', '__proto__', 'constructor', 'ai.onnx', 'com.microsoft', '\0', 'é'];

/** The bytes of the model of a seed. */
export function modelOf(seed) {
  const random = new Random(seed);
  const fields = structuredClone(modelProto(random.pick(corpus)));
  const where = random.pick(['fields', 'fields', 'fields', 'fields', 'bytes', 'both']);
  if (where !== 'bytes')
    for (let times = 1 + random.upTo(2); times > 0; --times) changeField(random, fields);
  let bytes;
  try {
    bytes = encodeProto(fields);
  } catch {
    bytes = encodeProto(modelProto(random.pick(corpus))); // a type that no field of this kind takes
  }
  if (where !== 'fields')
    for (let times = 1 + random.upTo(3); times > 0; --times) bytes = changeBytes(random, bytes);
  return bytes;
}

const isParent = (value) =>
  typeof value === 'object' && value !== null && !ArrayBuffer.isView(value);

function placesIn(value, found = []) {
  for (const key of Object.keys(value)) {
    found.push([value, key]);
    if (isParent(value[key])) placesIn(value[key], found);
  }
  return found;
}

function changeField(random, fields) {
  const places = placesIn(fields);
  const [parent, key] = random.pick(places);
  const [donor, donorKey] = random.pick(places);
  const old = parent[key];
  const isReal = key === 'f' || Number.isInteger(old) === false;
  const action = random.upTo(9);
  if (action === 0) {
    if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete parent[key];
  } else if (action === 1 && Array.isArray(parent) && parent.length < 1000) {
    parent.splice(Number(key), 0, structuredClone(old));
  } else if (action === 2 && Array.isArray(old)) {
    old.reverse();
  } else if (ArrayBuffer.isView(old)) {
    changeElements(random, parent, key);
  } else if (typeof old === 'number' || typeof old === 'bigint') {
    const values = random.upTo(3) === 0 ? wide : numbers;
    parent[key] = random.pick(typeof old === 'number' && isReal ? reals : values);
  } else if (typeof old === 'string') {
    const strings = places.filter(([parent, key]) => typeof parent[key] === 'string');
    const [from, name] = random.pick(strings);
    parent[key] = random.upTo(4) === 0 ? random.pick(texts) : from[name];
  } else if (isParent(old) && isParent(donor[donorKey]) && donorKey === key) {
    parent[key] = structuredClone(donor[donorKey]);
  } else if (Array.isArray(old)) {
    const value = random.pick(old.length > 0 ? old : [1]);
    old.push(isParent(value) || ArrayBuffer.isView(value) ? structuredClone(value) : value);
  }
}

function changeElements(random, parent, key) {
  const old = parent[key];
  const bytes = new Uint8Array(old.buffer, old.byteOffset, old.byteLength);
  const action = random.upTo(3);
  if (action === 0) parent[key] = bytes.slice(0, random.upTo(bytes.length));
  else if (action === 1) parent[key] = Uint8Array.of(...bytes, ...bytes.subarray(0, 9));
  else {
    const changed = bytes.slice();
    for (let i = random.upTo(8); i >= 0 && changed.length > 0; --i)
      changed[random.upTo(changed.length - 1)] = random.pick([
        0,
        1,
        127,
        128,
        255,
        random.upTo(255),
      ]);
    parent[key] = changed;
  }
}

function changeBytes(random, bytes) {
  if (bytes.length === 0) return bytes;
  const at = random.upTo(bytes.length - 1);
  const end = Math.min(bytes.length, at + random.upTo(40));
  const kind = random.upTo(5);
  const changeRun = changesOfRuns[kind];
  if (changeRun) return changeRun(random, bytes, at, end);
  if (kind === 4) {
    // A number of many bytes.
    const digits = Array.from({ length: random.upTo(11) }, () => 128 | random.upTo(127));
    return splice(bytes, at, end, ...digits, 1);
  }
  const changed = bytes.slice();
  changed[at] = random.upTo(1) === 0 ? changed[at] ^ (1 << random.upTo(7)) : random.upTo(255);
  return changed;
}
