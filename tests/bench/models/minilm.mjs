// The graph of all-MiniLM-L6-v2, a model that turns text into vectors, as transformers.js loads
// it. It has opset 11, and 637 nodes in float32 or 772 in int8. Weights are random, and
// there are fewer words.
import { randomFrom } from '../../conformance/qgemm.mjs';
import { graphMaker } from './graph.mjs';

const size = 384;
const heads = 12;
const width = size / heads;
const hidden = 1536;
const positions = 512;
const words = 1000;
const least = -3.4028234663852886e38; // of float32

/**
 * The bytes of the model. Its output is `last_hidden_state`, [batch, sequence, 384].
 *
 * @param variant 'float32'; or 'int8', as ONNX Runtime's dynamic quantization writes it: weights
 *   have a scale per column, and 24 nodes DynamicQuantizeLinear serve 36 products
 * @param types whether there is the input `token_type_ids`, which DistilBERT lacks
 * @param pooled whether there is a second output, `sentence_embedding`, [batch, 384]: the mean of
 *   the tokens, of length 1. The first one is `token_embeddings` then, as in exports of
 *   sentence-transformers
 */
export function miniLm(options = {}) {
  const { variant = 'float32', layers = 6, seed = 1, types = true, pooled = false } = options;
  const isInt8 = variant === 'int8';
  const graph = graphMaker(seed);
  const { node, floats, nearOne, constant } = graph;

  const table = (name, rows) => {
    floats(name, [rows, size], 1);
    return isInt8 ? quantizeTable(graph) : name;
  };
  const lookUp = (name, rows, indices) => {
    const rowsOf = table(`embeddings.${name}.weight`, rows);
    if (!isInt8) return node('Gather', [rowsOf, indices], `embeddings.${name}`, { axis: 0 });
    const found = node('Gather', [rowsOf, indices], `${rowsOf}.rows`, { axis: 0 });
    const factors = [`${rowsOf}.scale`, `${rowsOf}.zero_point`];
    return node('DequantizeLinear', [found, ...factors], `embeddings.${name}`);
  };

  const quantized = new Set();
  const product = (x, name, from, to) => {
    const w = floats(`${name}.weight`, [from, to], Math.sqrt(3 / from));
    if (!isInt8) return node('MatMul', [x, w], `${name}.product`);
    quantizeColumns(graph, from, to);
    const [q, scale, zero] = ['quantized', 'scale', 'zero_point'].map((part) => `${x}.${part}`);
    if (!quantized.has(x)) node('DynamicQuantizeLinear', [x], [q, scale, zero]);
    quantized.add(x);
    const inputs = [q, `${w}.quantized`, zero, `${w}.zero_point`];
    const sums = node('MatMulInteger', inputs, `${name}.sums`);
    const floating = node('Cast', [sums], `${name}.cast`, { to: 1 });
    const factors = node('Mul', [scale, `${w}.scale`], `${name}.scales`);
    return node('Mul', [floating, factors], `${name}.product`);
  };
  const dense = (x, name, from, to) =>
    node('Add', [product(x, name, from, to), floats(`${name}.bias`, [to], 0.1)], name);

  const normalize = (x, name) => {
    const mean = node('ReduceMean', [x], `${name}.mean`, { axes: [-1] });
    const centered = node('Sub', [x, mean], `${name}.centered`);
    const two = constant(`${name}.two`, 'float32', 2);
    const squares = node('Pow', [centered, two], `${name}.squares`);
    const variance = node('ReduceMean', [squares], `${name}.variance`, { axes: [-1] });
    const epsilon = constant(`${name}.epsilon`, 'float32', 1e-12);
    const sum = node('Add', [variance, epsilon], `${name}.sum`);
    const deviation = node('Sqrt', [sum], `${name}.deviation`);
    const divided = node('Div', [centered, deviation], `${name}.divided`);
    const scaled = node('Mul', [divided, nearOne(`${name}.weight`, [size])], `${name}.scaled`);
    return node('Add', [scaled, floats(`${name}.bias`, [size], 0.1)], name);
  };

  /** One size of a value, as a list of one. */
  const sizeOf = (x, axis, name) => {
    const shape = node('Shape', [x], `${name}.shape`);
    const index = constant(`${name}.index`, 'int64', axis);
    const one = node('Gather', [shape, index], `${name}.size`, { axis: 0 });
    return node('Unsqueeze', [one], name, { axes: [0] });
  };
  /** Reshapes to [batch, sequence, ...last]; PyTorch writes the shape out. */
  const reshape = (x, last, name) => {
    const sizes = [0, 1].map((axis) => sizeOf(x, axis, `${name}.axis${axis}`));
    const rest = last.map((size, i) => constant(`${name}.last${i}`, 'int64', [size]));
    const shape = node('Concat', [...sizes, ...rest], `${name}.sizes`, { axis: 0 });
    return node('Reshape', [x, shape], name);
  };
  const toHeads = (x, name, perm) =>
    node('Transpose', [reshape(x, [heads, width], `${name}.heads`)], `${name}.turned`, { perm });

  const attention = (x, name, mask) => {
    const [query, key, value] = ['query', 'key', 'value'].map((part) =>
      dense(x, `${name}.self.${part}`, size, size),
    );
    const k = toHeads(key, key, [0, 2, 3, 1]);
    const v = toHeads(value, value, [0, 2, 1, 3]);
    const q = toHeads(query, query, [0, 2, 1, 3]);
    const scores = node('MatMul', [q, k], `${name}.scores`);
    const root = constant(`${name}.root`, 'float32', Math.sqrt(width));
    const scaled = node('Div', [scores, root], `${name}.scaled`);
    const masked = node('Add', [scaled, mask], `${name}.masked`);
    const shares = node('Softmax', [masked], `${name}.shares`, { axis: 3 });
    const context = node('MatMul', [shares, v], `${name}.context`);
    const perm = [0, 2, 1, 3];
    const turned = node('Transpose', [context], `${name}.context.turned`, { perm });
    return reshape(turned, [size], `${name}.context.rows`);
  };

  const gelu = (x, name) => {
    const root = constant(`${name}.root`, 'float32', Math.SQRT2);
    const erf = node('Erf', [node('Div', [x, root], `${name}.scaled`)], `${name}.erf`);
    const sum = node('Add', [erf, constant(`${name}.one`, 'float32', 1)], `${name}.sum`);
    const doubled = node('Mul', [x, sum], `${name}.doubled`);
    return node('Mul', [doubled, constant(`${name}.half`, 'float32', 0.5)], name);
  };

  // 0 for a token, and the least number for padding.
  const rows = node('Unsqueeze', ['attention_mask'], 'mask.rows', { axes: [1] });
  const wide = node('Unsqueeze', [rows], 'mask.wide', { axes: [2] });
  const known = node('Cast', [wide], 'mask.cast', { to: 1 });
  const padding = node('Sub', [constant('mask.one', 'float32', 1), known], 'mask.padding');
  const mask = node('Mul', [padding, constant('mask.least', 'float32', least)], 'mask');

  const ids = graph.tensor(
    'embeddings.position_ids',
    'int64',
    [1, positions],
    BigInt64Array.from({ length: positions }, (_, i) => BigInt(i)),
  );
  const length = sizeOf('input_ids', 1, 'sequence');
  const [start, axis, step] = [0, 1, 1].map((value, i) =>
    constant(`positions.slice${i}`, 'int64', [value]),
  );
  const places = node('Slice', [ids, start, length, axis, step], 'positions');
  const found = lookUp('word_embeddings', words, 'input_ids');
  const embedded = types
    ? node('Add', [found, lookUp('token_type_embeddings', 2, 'token_type_ids')], 'embeddings.words')
    : found;
  const placed = lookUp('position_embeddings', positions, places);
  let x = node('Add', [embedded, placed], 'embeddings.sum');
  x = normalize(x, 'embeddings.LayerNorm');
  for (let i = 0; i < layers; ++i) {
    const name = `layer.${i}`;
    const context = attention(x, `${name}.attention`, mask);
    const attended = dense(context, `${name}.attention.output`, size, size);
    const first = node('Add', [attended, x], `${name}.attention.residual`);
    const middle = normalize(first, `${name}.attention.LayerNorm`);
    const inner = gelu(dense(middle, `${name}.intermediate`, size, hidden), `${name}.gelu`);
    const outer = dense(inner, `${name}.output`, hidden, size);
    const second = node('Add', [outer, middle], `${name}.residual`);
    const isLast = i === layers - 1;
    const last = pooled ? 'token_embeddings' : 'last_hidden_state';
    x = normalize(second, isLast ? last : `${name}.LayerNorm`);
  }
  const outputs = [{ name: x, dtype: 'float32', shape: ['batch', 'sequence', size] }];
  if (pooled) {
    const mask = node('Cast', ['attention_mask'], 'pooling.mask', { to: 1 });
    const column = node('Unsqueeze', [mask], 'pooling.column', { axes: [2] });
    const masked = node('Mul', [x, column], 'pooling.masked');
    const sums = node('ReduceSum', [masked], 'pooling.sums', { axes: [1], keepdims: 0 });
    const tokens = node('ReduceSum', [column], 'pooling.tokens', { axes: [1], keepdims: 0 });
    const mean = node('Div', [sums, tokens], 'pooling.mean');
    const length = node('ReduceL2', [mean], 'pooling.length', { axes: [1] });
    const name = node('Div', [mean, length], 'sentence_embedding');
    outputs.push({ name, dtype: 'float32', shape: ['batch', size] });
  }
  const inputs = ['input_ids', 'attention_mask', ...(types ? ['token_type_ids'] : [])];
  return graph.encode({
    opsets: { '': 11 },
    irVersion: 6,
    inputs: inputs.map((name) => ({ name, dtype: 'int64', shape: ['batch', 'sequence'] })),
    outputs,
  });
}

/** Makes the table that was added last uint8, with one scale and zero point. */
function quantizeTable({ takeBack, tensor, scalar }) {
  const { name, shape, data } = takeBack();
  const most = data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const scale = most / 127;
  scalar(`${name}.scale`, 'float32', scale);
  scalar(`${name}.zero_point`, 'uint8', 128);
  const elements = Uint8Array.from(data, (value) => 128 + Math.round(value / scale));
  return tensor(name, 'uint8', shape, elements);
}

/**
 * Makes the matrix that was added last int8, with a scale per column. Elements have 7 bits, so that
 * no processor saturates the sum of two products.
 */
function quantizeColumns({ takeBack, tensor }, rows, columns) {
  const { name, shape, data } = takeBack();
  const most = new Float32Array(columns);
  for (let i = 0; i < data.length; ++i)
    most[i % columns] = Math.max(most[i % columns], Math.abs(data[i]));
  const scales = most.map((value) => value / 63);
  const elements = new Int8Array(data.length);
  for (let i = 0; i < data.length; ++i) elements[i] = Math.round(data[i] / scales[i % columns]);
  tensor(`${name}.quantized`, 'int8', shape, elements);
  tensor(`${name}.scale`, 'float32', [columns], scales);
  tensor(`${name}.zero_point`, 'int8', [columns], new Int8Array(columns));
}

/**
 * The inputs of a run: random words. Each text except the first one may end before the last token,
 * and is padded.
 */
export function textsOf({ batch = 1, tokens, seed = 1 }) {
  const random = randomFrom(seed);
  const shape = [batch, tokens];
  const input = (element) => ({
    dtype: 'int64',
    shape,
    data: BigInt64Array.from({ length: batch * tokens }, (_, i) => BigInt(element(i))),
  });
  const lengths = Array.from({ length: batch }, (_, i) =>
    i === 0 ? tokens : 1 + Math.floor(random() * tokens),
  );
  const isWord = (i) => i % tokens < lengths[Math.floor(i / tokens)];
  return {
    input_ids: input((i) => (isWord(i) ? 1 + Math.floor(random() * (words - 1)) : 0)),
    attention_mask: input((i) => (isWord(i) ? 1 : 0)),
    token_type_ids: input(() => 0),
  };
}
