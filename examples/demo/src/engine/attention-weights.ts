/**
 * Words as vectors, and weights made by hand so that each head looks for something that one can
 * see. Nothing is trained.
 *
 * A vector has six segments of `width` elements: where the token is, its spelling, its letters, its
 * first letter, and two that are 0. The heads write there what they found. A head compares one
 * segment of two tokens: each segment has length 1, so that equal ones score highest.
 */

export const maxTokens = 24;
export const width = 32; // per head

/** The heads, in order; the page has a map for each. */
export const headNames = ['word', 'before', 'after', 'letters', 'first', 'start'] as const;
export const heads = headNames.length;
export const size = heads * width;

const segments = { position: 0, spelling: width, letters: 2 * width, first: 3 * width };
const free = { spelling: 4 * width, position: 5 * width };

// --- tokens --------------------------------------------------------------------------------------

const word = String.raw`[\p{L}\p{M}\p{N}]+`;
// A symbol and what joins it to the next: a family is one token.
const symbol = String.raw`\S[\p{M}\u{FE0F}]*(?:\u{200D}\S[\p{M}\u{FE0F}]*)*`;
const tokenPattern = new RegExp(`${word}(?:['’-]${word})*|${symbol}`, 'gu');

/** Words and marks, in order. */
export function tokensOf(sentence: string): string[] {
  return sentence.match(tokenPattern) ?? [];
}

// --- vectors -------------------------------------------------------------------------------------

/** The vectors of tokens, one after another. */
export function vectorsOf(tokens: string[]): Float32Array {
  const x = new Float32Array(tokens.length * size);
  tokens.forEach((token, i) => {
    // Without accents, and small: "É" is "e".
    const text = token.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase() || token;
    const characters = [...text];
    const segment = (start: number) => x.subarray(i * size + start, i * size + start + width);
    segment(segments.position).set(positionCode(i));
    const spelling = segment(segments.spelling);
    const marked = ['^', ...characters, '$'];
    for (let at = 0; at + 2 < marked.length; ++at)
      addSigns(spelling, hashOf(marked.slice(at, at + 3).join('')));
    for (const character of characters) addCharacter(segment(segments.letters), character);
    addCharacter(segment(segments.first), characters[0]!);
    for (const start of Object.values(segments)) normalize(segment(start));
  });
  return x;
}

/**
 * Sines and cosines of the position. With these frequencies, the codes of two positions less than
 * 32 places away are at right angles. A matrix of rotations moves a code by one position.
 */
function positionCode(position: number): Float32Array {
  const code = new Float32Array(width);
  for (let pair = 0; pair < width / 2; ++pair) {
    const angle = frequencyOf(pair) * position;
    code[2 * pair] = Math.cos(angle) / Math.sqrt(width / 2);
    code[2 * pair + 1] = Math.sin(angle) / Math.sqrt(width / 2);
  }
  return code;
}

const frequencyOf = (pair: number) => (Math.PI * (pair + 0.5)) / (width / 2);

/** Adds 1 or -1 to each element: codes of two hashes are nearly at right angles. */
function addSigns(segment: Float32Array, hash: number): void {
  for (let c = 0; c < width; ++c) segment[c]! += (hash >>> c) & 1 ? 1 : -1;
}

/** Each letter from a to z has an element of its own; all others share the six that are left. */
function addCharacter(segment: Float32Array, character: string): void {
  const letter = character.charCodeAt(0) - 97;
  if (character.length === 1 && letter >= 0 && letter < 26) {
    segment[letter]! += 1;
    return;
  }
  const hash = hashOf(character);
  for (let c = 26; c < width; ++c) segment[c]! += (hash >>> c) & 1 ? 0.4 : -0.4;
}

function normalize(segment: Float32Array): void {
  const length = Math.hypot(...segment);
  if (length > 0) for (let c = 0; c < width; ++c) segment[c]! /= length;
}

/** 32 bits that depend on all characters: FNV-1a, then the last steps of MurmurHash3. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; ++i)
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

// --- weights -------------------------------------------------------------------------------------

type Name = (typeof headNames)[number];

/** Scores of equal segments. A higher one makes a head look at fewer tokens. */
const sharpness: Record<Name, number> = {
  word: 9,
  before: 10,
  after: 10,
  letters: 8,
  first: 8,
  start: 6,
};

const compared: Record<Name, keyof typeof segments> = {
  word: 'spelling',
  before: 'position',
  after: 'position',
  letters: 'letters',
  first: 'first',
  start: 'position',
};

const steps: Partial<Record<Name, number>> = { before: -1, after: 1 };

/** Weights of [size, size], and biases. */
export function makeWeights() {
  const matrix = () => new Float32Array(size * size);
  const weights = { q: matrix(), k: matrix(), v: matrix(), o: matrix() };
  const biases = {
    q: new Float32Array(size),
    k: new Float32Array(size),
    v: new Float32Array(size),
  };
  headNames.forEach((name, head) => {
    const from = segments[compared[name]];
    const to = head * width;
    // A score is q k' / sqrt(width).
    const scale = Math.sqrt(sharpness[name] * Math.sqrt(width));
    for (let c = 0; c < width; ++c) {
      weights.k[(from + c) * size + to + c] = scale;
      if (name !== 'start' && !steps[name]) weights.q[(from + c) * size + to + c] = scale;
      // What a head finds is the spelling of what it looks at.
      weights.v[(segments.spelling + c) * size + to + c] = 1;
      weights.o[(to + c) * size + free[from ? 'spelling' : 'position'] + c] = 1 / 3;
    }
    // All tokens ask for the first one.
    if (name === 'start')
      positionCode(0).forEach((value, c) => {
        biases.q[to + c] = scale * value;
      });
    if (steps[name]) addSteps(weights.q, from, to, scale, steps[name]);
  });
  return { weights, biases };
}

/** A token asks for the one some steps away; if there is none, for itself, at half the score. */
function addSteps(q: Float32Array, from: number, to: number, scale: number, step: number): void {
  for (let c = 0; c < width; c += 2) {
    const angle = frequencyOf(c / 2) * step;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    q[(from + c) * size + to + c] = scale * (cos + 0.5);
    q[(from + c) * size + to + c + 1] = scale * sin;
    q[(from + c + 1) * size + to + c] = -scale * sin;
    q[(from + c + 1) * size + to + c + 1] = scale * (cos + 0.5);
  }
}
