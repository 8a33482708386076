/** Attention, and the operators of transformers around it. */
import { ArgumentError, ShapeError } from '../../base/errors.js';
import { contiguousStrides } from '../../base/layout.js';
import type { OnnxNode } from '../read/model.js';
import type { Make, OnnxDType, Value } from '../read/value.js';
import {
  accumulated,
  broadcast,
  broadcasted,
  cast,
  type Compute,
  computed,
  copy,
  listed,
  numbersIn,
  refuse,
  reshaped,
  type Row,
  scalar,
  shown,
  spread,
  stridesIn,
} from './define.js';
import { isGreater } from './comparisons.js';
import { normalized } from './normalize.js';
import { type Attributes, unsupported } from './operator.js';
import { record, type StepTensor } from './record.js';
import { gathered as gatheredAlong } from './shapes.js';
import { inArray, NeedsRun, sizeOf } from './storage.js';

/** A tensor of heads. */
interface Heads extends StepTensor {
  /** The batch, heads, rows, and elements of a head. */
  readonly shape: Sizes;
}
type Sizes = readonly [batch: number, heads: number, rows: number, size: number];

/** Refuses a shape. A text in place of a size allows all sizes. */
function mustBe(name: string, shape: readonly number[], wanted: readonly (number | string)[]) {
  const fits = wanted.every((size, axis) => typeof size === 'string' || size === shape[axis]);
  if (!fits || wanted.length !== shape.length)
    refuse(ShapeError, name, `has shape ${shown(shape)}`, shown(wanted));
}

const at = (value: Value, strides: readonly number[], start = 0): StepTensor => ({
  value,
  strides,
  start,
});

const number = (value: number): Value => ({
  dtype: 'float32',
  shape: [],
  data: Float32Array.of(value),
});
const zero = number(0);
const lowest = number(-Infinity);
const noLength: Value = { dtype: 'int32', shape: [], data: Int32Array.of(0) };

/** `count` whole numbers from `first` on. */
function counted(dtype: OnnxDType, count: number, first = 0): Value {
  // Beyond any model: a shape without elements may have such a size.
  if (count > 2 ** 24)
    refuse(ShapeError, 'sequence', `has ${count} rows`, 'at most 2^24 rows long');
  const list = listed(Array.from({ length: count }, (_, i) => i + first));
  return cast(list, inArray, dtype);
}

/** A value of shape (batch, heads, rows, size), or (batch, rows, heads * size). */
function headsOf(value: Value, count: number, name: string): Heads {
  const { shape } = value;
  if (shape.length === 4) return own(value, shape as unknown as Sizes);
  const width = (shape[2] as number) / count;
  mustBe(name, shape, ['batch', 'rows', count * Math.ceil(width)]);
  return partOf(value, count, width, 0);
}

/** Heads that lie in each row of a value of rank 3, from an element on. */
function partOf(value: Value, count: number, size: number, start: number): Heads {
  const [batch, rows, width] = value.shape as [number, number, number];
  return {
    value,
    shape: [batch, count, rows, size],
    strides: [rows * width, size, width, 1],
    start,
  };
}

/** Heads that lie one after another. */
const own = (value: Value, shape: Sizes, start = 0): Heads => ({
  value,
  shape,
  strides: contiguousStrides(shape),
  start,
});

/** Copies rows of heads to `to`, from its row `row` on. */
function copyRows(to: Heads, from: Heads, row: number): void {
  const start = to.start + row * (to.strides[2] as number);
  copy(to.value, from.value, from.shape, to.strides, from.strides, start, from.start);
}

/** Writes past rows and new ones to `to`, if there is one. Returns the heads with all rows. */
function appended(past: Heads | undefined, fresh: Heads, to: Heads | undefined): Heads {
  if (past && to) copyRows(to, past, 0);
  if (to) copyRows(to, fresh, past?.shape[2] ?? 0);
  return to ?? fresh;
}

/** Past rows and new ones. */
function grown(make: Make, given: Value | undefined, fresh: Heads, isResult: boolean): Heads {
  const [batch, heads, rows, size] = fresh.shape;
  if (given) mustBe('past', given.shape, [batch, heads, 'rows', size]);
  const past = given && headsOf(given, heads, '');
  const all: Sizes = [batch, heads, (past?.shape[2] ?? 0) + rows, size];
  const to = given || isResult ? own(make(fresh.value.dtype, all), all) : undefined;
  return appended(past, fresh, to);
}

/** How attention is computed. */
interface AttentionForm {
  readonly scale?: number | undefined;
  readonly softcap?: number;
  /** Added to scores. It broadcasts to (batch, heads, queries, keys). */
  readonly mask?: Value | undefined;
  /** Query `l` sees keys before `first + slope * l`, plus the number of its batch in `lengths`. */
  readonly first?: number;
  readonly slope?: number;
  readonly lengths?: Value | undefined;
  /** How many keys before these a query sees. */
  readonly window?: number;
  /** Which scores are a second result: see Stage in src/nn/attention.cc. */
  readonly mode?: number | undefined;
}

/** The result, of rank 3 or 4, and the scores if the form asks for them. */
function attend(
  make: Make,
  q: Heads,
  k: Heads,
  v: Heads,
  rank: number,
  form: AttentionForm,
): Value[] {
  const { softcap = 0, mask, first = Infinity, slope = 0, window = Infinity, mode } = form;
  const { scale, lengths = noLength } = form;
  const [batch, heads, queries, depth] = q.shape;
  const [, keyHeads, keys] = k.shape;
  const width = v.shape[3];
  const group = heads / keyHeads;
  mustBe('key', k.shape, [batch, heads / Math.ceil(group), keys, depth]);
  mustBe('value', v.shape, [batch, keyHeads, keys, 'size']);
  const scores: Sizes = [batch, heads, queries, keys];
  if (mask) mustBe('mask', broadcast(mask.shape, scores), scores);
  if (lengths !== noLength) mustBe('lengths', lengths.shape, [batch]);
  /** The strides of a tensor, whose last axes are these axes of the step. */
  const along = (
    { value, strides, start }: StepTensor,
    row: number,
    column: number,
    isShared = false,
  ) => {
    const [b, n, r, c] = strides as unknown as Sizes;
    const all = isShared ? [b, n, 0, 0, 0, 0, 0] : [b, n * group, n, 0, 0, 0, 0];
    all[row] = r;
    all[column] = c;
    return at(value, all, start);
  };
  const { dtype } = q.value;
  const shape = rank === 3 ? [batch, queries, heads * width] : [batch, heads, queries, width];
  const y = make(dtype, shape);
  const results = mode === undefined ? [y] : [y, make(dtype, scores)];
  const nothing = [0, 0, 0, 0, 0, 0, 0];
  const tensors = [
    along(q, 3, 5),
    along(k, 4, 5, true),
    along(v, 4, 6, true),
    mask ? along(at(mask, stridesIn(scores, mask.shape)), 3, 4) : at(zero, nothing),
    at(lengths, lengths === noLength ? nothing : [1, ...nothing.slice(1)]),
    along(headsOf(y, heads, ''), 3, 6),
    ...results.slice(1).map((value) => along(own(value, scores), 3, 4)),
  ];
  record(
    mode === undefined ? 'Attention' : 'AttentionScores',
    [batch, keyHeads, group, queries, keys, depth, width],
    tensors,
    [scale ?? 1 / Math.sqrt(depth), softcap, mask ? 1 : 0, first, slope, window, mode ?? 0],
    results.length,
  );
  return results;
}

/** Rows of a table of rank 2, by their indices. */
function gathered(make: Make, table: Value, indices: Value, columns: number | string = 'columns') {
  mustBe('table', table.shape, ['rows', columns]);
  return gatheredAlong(make, table, indices, 0);
}

/** The elements of a row of cosines or sines. */
function halfOf(cache: Value | undefined): number {
  if (!cache) refuse(ArgumentError, 'cos_cache', 'or sin_cache is absent', 'given');
  return cache.shape.at(-1) ?? refuse(ShapeError, 'cos_cache', 'has shape []', 'of rank 2 or 3');
}

/** `count` positions: the first element, and those after it. */
function following(make: Make, first: Value, count: number): Value {
  const y = make('int64', [count]);
  record('Add', [count], [at(first, [0]), at(counted('int64', count), [1]), at(y, [1])]);
  return y;
}

/** Rotates pairs of elements of heads: caches have a row per position, or per token of a batch. */
function rotate(
  make: Make,
  x: Heads,
  y: Heads,
  caches: readonly (Value | undefined)[],
  positions: Value | undefined,
  isInterleaved: boolean,
): void {
  const [batch, heads, rows, size] = x.shape;
  const half = halfOf(caches[0]);
  const count = positions ? sizeOf(positions.shape) : rows;
  if (count !== rows) mustBe('position_ids', [count], [batch * rows]);
  const pairs = ({ value, strides, start }: Heads) =>
    at(value, [...strides.slice(0, 3), isInterleaved ? 2 : 1], start);
  const [cos, sin] = (caches as Value[]).map((cache) => {
    if (halfOf(cache) !== half || 2 * half > size)
      refuse(ShapeError, 'cos_cache', `has rows of ${half}`, `of at most ${size / 2}`);
    if (!positions) mustBe('cos_cache', cache.shape, [batch, rows, half]);
    const value = positions ? gathered(make, cache, positions, half) : cache;
    // Positions of one batch may serve all.
    return at(value, [sizeOf(value.shape) === rows * half ? 0 : rows * half, 0, half, 1]);
  }) as [StepTensor, StepTensor];
  const tensors = [pairs(x), cos, sin, pairs(y)];
  record('Rotary', [batch, heads, rows, half], tensors, [isInterleaved ? 1 : half]);
  const rest = size - 2 * half;
  const [from, to] = [x.start + 2 * half, y.start + 2 * half];
  if (rest) copy(y.value, x.value, [batch, heads, rows, rest], y.strides, x.strides, to, from);
}

/** The bias of keys that a mask of whole numbers hides, as ONNX Runtime adds it. */
function maskOf(make: Make, mask: Value, [batch, , queries, keys]: Sizes, filter: number): Value {
  // A mask of rank 1 has the number of keys of each batch: a key is seen if it is less.
  const seen =
    mask.shape.length === 1
      ? (isGreater([reshaped(mask, [...mask.shape, 1]), counted('int32', keys)], make) as Value)
      : mask;
  const isEach = seen.shape.length === 3;
  mustBe('mask', seen.shape, isEach ? [batch, queries, keys] : [batch, keys]);
  const flags = cast(seen, make, 'bool');
  const bias = broadcasted(make, 'Where', [flags, zero, number(filter)], 'float32');
  return reshaped(bias, [batch, 1, isEach ? queries : 1, keys]);
}

/** ONNX's Attention. */
function attention(attributes: Attributes, _: number, node: OnnxNode): Compute {
  const isCausal = attributes.flag('is_causal', false);
  const scale = attributes.float('scale', undefined);
  const softcap = attributes.float('softcap', 0);
  const heads = attributes.int('q_num_heads', 0);
  const keyHeads = attributes.int('kv_num_heads', 0);
  const mode = attributes.int('qk_matmul_output_mode', 0);
  attributes.ignore('softmax_precision'); // float32 suffices for all types that it takes
  return ([query, key, value, mask, pastKey, pastValue, lengths], make) => {
    if (!pastKey !== !pastValue || (pastKey && lengths))
      refuse(ArgumentError, 'past_key', 'is given', 'with past_value, without nonpad_kv_seqlen');
    const q = headsOf(query as Value, heads, 'Q');
    const k = grown(make, pastKey, headsOf(key as Value, keyHeads, 'K'), !!node.outputs[1]);
    const v = grown(make, pastValue, headsOf(value as Value, keyHeads, 'V'), !!node.outputs[2]);
    const before = lengths ? -q.shape[2] : (pastKey?.shape[2] ?? 0);
    const [y, scores] = attend(make, q, k, v, (query as Value).shape.length, {
      scale,
      softcap,
      mask: mask && biasOf(make, mask, k.shape[2]),
      lengths,
      slope: isCausal ? 1 : 0,
      first: isCausal ? before + 1 : lengths ? 0 : Infinity,
      mode: node.outputs[3] ? mode : undefined,
    });
    return [y, k.value, v.value, scores] as Value[];
  };
}

/** A mask as what is added to scores. Beyond its last axis, it hides keys. */
function biasOf(make: Make, mask: Value, keys: number): Value {
  const bias =
    mask.dtype === 'bool' ? broadcasted(make, 'Where', [mask, zero, lowest], 'float32') : mask;
  const { dtype, shape } = bias;
  const given = shape.at(-1) ?? keys;
  if (given >= keys) return bias;
  const full = make(dtype, [...shape.slice(0, -1), keys]);
  const rows = sizeOf(shape.slice(0, -1));
  copy(full, cast(lowest, make, dtype), [rows, keys - given], [keys, 1], [0, 0], given, 0);
  copy(full, bias, [rows, given], [keys, 1], [given, 1], 0, 0);
  return full;
}

/** The attributes that the attentions of com.microsoft share, and how their end is computed. */
function readShared(attributes: Attributes) {
  const scale = attributes.float('scale', 0) || undefined;
  const heads = attributes.int('num_heads');
  const isCausal = attributes.flag('unidirectional', false);
  const filter = attributes.float('mask_filter_value', -10000);
  const finish = (
    make: Make,
    q: Heads,
    k: Heads,
    v: Heads,
    before: number,
    given: Value | undefined,
    bias: Value | undefined,
  ): Value => {
    const [batch, , queries] = q.shape;
    let mask = given && maskOf(make, given, [batch, 1, queries, k.shape[2]], filter);
    if (bias) mask = mask ? broadcasted(make, 'Add', [mask, cast(bias, make, 'float32')]) : bias;
    const causal = isCausal && { first: before + 1, slope: 1 };
    return attend(make, q, k, v, 3, { scale, mask, ...causal })[0] as Value;
  };
  return { heads, scale, finish };
}

/** Refuses attributes that are above 0. */
function refuseAttributes(attributes: Attributes, ...names: string[]): void {
  for (const name of names)
    if (attributes.int(name, 0) > 0)
      throw unsupported(attributes.node, `has ${name}, which is not supported`);
}

function multiHeadAttention(attributes: Attributes, _: number, node: OnnxNode): Compute {
  const { heads, finish } = readShared(attributes);
  return ([query, key, value, bias, mask, scores, pastKey, pastValue], make) => {
    const given = [query, key, value].map((each) =>
      headsOf(each as Value, heads, 'query'),
    ) as Three;
    const [q, k, v] = bias ? addBias(make, given, bias) : given;
    const keys = grown(make, pastKey, k, !!node.outputs[1]);
    const values = grown(make, pastValue, v, !!node.outputs[2]);
    const y = finish(make, q, keys, values, pastKey?.shape[2] ?? 0, mask, scores);
    return [y, keys.value, values.value] as Value[];
  };
}

type Three = [q: Heads, k: Heads, v: Heads];

/** Adds to heads their elements of a bias, which lie one after another. */
function addBias(make: Make, parts: Three, bias: Value): Three {
  mustBe('bias', bias.shape, [parts.reduce((sum, { shape }) => sum + shape[1] * shape[3], 0)]);
  let start = 0;
  return parts.map((part) => {
    const { shape, value } = part;
    const sum = own(make(value.dtype, shape), shape);
    record('Add', shape, [part, at(bias, [0, shape[3], 0, 1], start), sum]);
    start += shape[1] * shape[3];
    return sum;
  }) as Three;
}

/**
 * Attention of com.microsoft, of the product that `expand` makes of its first inputs: queries, keys
 * and values in each row.
 */
function attentionOfProduct(attributes: Attributes, _: number, node: OnnxNode): Compute {
  const { heads, finish } = readShared(attributes);
  const sizes = attributes.ints('qkv_hidden_sizes', undefined);
  refuseAttributes(attributes, 'do_rotary', 'past_present_share_buffer');
  attributes.ignore('rotary_embedding_dim');
  return ([product, mask, given, scores], make) => {
    const { shape, dtype } = product as Value;
    const widths = sizes ?? [0, 1, 2].map(() => (shape[2] as number) / 3);
    mustBe('qkv_hidden_sizes', [widths.length], [3]);
    let start = 0;
    const [q, k, v] = widths.map((each) => {
      const part = partOf(product as Value, heads, each / heads, start);
      start += heads * Math.ceil(each / heads);
      return part;
    }) as Three;
    mustBe('product', shape, ['batch', 'rows', start]);
    const [batch, , rows, size] = k.shape;
    const before = given?.shape[3] ?? 0;
    if (given) mustBe('past', given.shape, [2, batch, heads, before, v.shape[3]]);
    const isKept = given ?? node.outputs[1];
    if (isKept) mustBe('value', v.shape, k.shape);
    const present = isKept ? make(dtype, [2, batch, heads, before + rows, size]) : undefined;
    const half = (value: Value | undefined, rows: number, which: number): Heads | undefined => {
      const all: Sizes = [batch, heads, rows, size];
      return value && own(value, all, which * sizeOf(all));
    };
    const [keys, values] = [k, v].map((fresh, i) =>
      appended(half(given, before, i), fresh, half(present, before + rows, i)),
    ) as [Heads, Heads];
    return [finish(make, q, keys, values, before, mask, scores), present] as Value[];
  };
}

function groupQueryAttention(attributes: Attributes): Compute {
  const { heads, scale } = readShared(attributes);
  const keyHeads = attributes.int('kv_num_heads');
  const softcap = attributes.float('softcap', 0);
  const window = attributes.int('local_window_size', -1);
  const rotates = attributes.flag('do_rotary', false);
  const isInterleaved = attributes.flag('rotary_interleaved', false);
  refuseAttributes(attributes, 'smooth_softmax', 'qk_output');
  attributes.ignore('k_quant_type', 'v_quant_type', 'kv_cache_bit_width'); // no input is quantized
  return ([query, key, value, pastKey, pastValue, lengths, all, cos, sin, given, mask], make) => {
    const { shape, dtype } = query as Value;
    const count = heads + (key ? 0 : 2 * keyHeads);
    mustBe('query', shape, ['batch', 'rows', 'columns']);
    if (!key !== !value) refuse(ArgumentError, 'key', 'is given', 'given with value, or absent');
    const size = headsOf(query as Value, count, 'query').shape[3];
    let q = partOf(query as Value, heads, size, 0);
    let [k, v] = [key, value].map((each, i) =>
      each
        ? headsOf(each, keyHeads, 'key')
        : partOf(query as Value, keyHeads, size, (heads + i * keyHeads) * size),
    ) as [Heads, Heads];
    const [batch, rows] = shape as [number, number];
    const total = totalOf(make, all as Value, (pastKey?.shape[2] ?? 0) + rows);
    const isPrompt = rows === total;
    mustBe('seqlens_k', [sizeOf((lengths as Value).shape)], [batch]);
    const seen = reshaped(lengths as Value, [batch]);
    for (const { shape } of [k, v]) mustBe('key', shape, [batch, keyHeads, rows, size]);
    if (given) mustBe('position_ids', given.shape, [batch, rows]);
    if (rotates) {
      // ONNX Runtime's definition takes only the first position of a prompt.
      let positions = isPrompt && given ? following(make, given, rows) : given;
      if (isPrompt) positions ??= counted('int64', rows);
      const places = counted('int32', rows, 1 - rows);
      positions ??= broadcasted(make, 'Add', [reshaped(seen, [batch, 1]), places]);
      [q, k] = [q, k].map((x) => {
        const y = own(make(dtype, x.shape), x.shape);
        rotate(make, x, y, [cos, sin], positions, isInterleaved);
        return y;
      }) as [Heads, Heads];
    }
    const ends = isPrompt ? undefined : seen;
    k = written(make, pastKey, k, total, ends);
    v = written(make, pastValue, v, total, ends);
    const [y] = attend(make, q, k, v, 3, {
      scale,
      softcap,
      mask,
      slope: 1,
      first: isPrompt ? 1 : 2 - rows,
      lengths: ends,
      window: window > 0 ? window : Infinity,
    });
    return [y, k.value, v.value] as Value[];
  };
}

/** The number of all rows. If only a run knows it, the run checks that it is the sum. */
function totalOf(make: Make, all: Value, sum: number): number {
  mustBe('total_sequence_length', [sizeOf(all.shape)], [1]);
  try {
    return numbersIn(all)[0] as number;
  } catch (error) {
    if (!(error instanceof NeedsRun)) throw error;
    const checked = [zero, all, make('float32', [])].map((value) => at(value, [0]));
    record('WriteRows', [1], checked, [-sum, 1, 0]);
    return sum;
  }
}

/** Past rows, with new rows after each batch of them. A past may have room for the new rows. */
function written(
  make: Make,
  given: Value | undefined,
  fresh: Heads,
  total: number,
  lengths: Value | undefined,
): Heads {
  const [batch, heads, rows, size] = fresh.shape;
  if (given) mustBe('past', given.shape, [batch, heads, 'rows', size]);
  const before = given?.shape[2] ?? 0;
  const shape: Sizes = [batch, heads, Math.max(before, total), size];
  const { dtype } = fresh.value;
  const present = own(make(dtype, shape), shape);
  if (given) copyRows(present, headsOf(given, heads, ''), 0);
  if (!lengths) copyRows(present, fresh, 0);
  else {
    const empty = own(cast(zero, make, dtype), [batch, heads, shape[2] - before, size]);
    if (total > before) copyRows(present, { ...empty, strides: [0, 0, 0, 0] }, before);
    const tensors = [fresh, at(lengths, [1, 0, 0, 0]), present];
    record('WriteRows', fresh.shape, tensors, [1 - rows, size, shape[2] - rows]);
  }
  return present;
}

/** @param isOnnx whether the node is ONNX's, not com.microsoft's */
const rotaryEmbedding =
  (isOnnx: boolean) =>
  (attributes: Attributes): Compute => {
    const isInterleaved = attributes.flag('interleaved', false);
    const dim = attributes.int('rotary_embedding_dim', 0);
    const count = attributes.int('num_heads', 0);
    if (!isOnnx) {
      refuseAttributes(attributes, 'is_packed_batching');
      attributes.ignore('scale'); // as ONNX Runtime does
    }
    return ([x, ...inputs], make) => {
      const caches = inputs.slice(isOnnx ? 0 : 1, isOnnx ? 2 : 3);
      const { dtype, shape } = x as Value;
      const half = halfOf(caches[0]);
      const heads = count || (shape[2] as number) / (2 * half);
      const from = headsOf(x as Value, heads, 'input');
      const [batch, , rows, size] = from.shape;
      if (2 * half !== (dim || size))
        refuse(ShapeError, 'cos_cache', `has rows of ${half}`, `of ${(dim || size) / 2}`);
      let positions = inputs[isOnnx ? 2 : 0];
      // A single one is the position of the first row.
      if (shown(positions?.shape ?? []) === '[1]')
        positions = broadcasted(make, 'Add', [positions as Value, counted('int64', rows)]);
      else if (positions) mustBe('position_ids', positions.shape, [batch, rows]);
      const y = make(dtype, shape);
      rotate(make, from, headsOf(y, heads, ''), caches, positions, isInterleaved);
      return y;
    };
  };

function rmsNormalization(attributes: Attributes): Compute {
  const axis = attributes.int('axis', -1);
  const epsilon = attributes.float('epsilon', Math.fround(1e-5));
  attributes.ignore('stash_type'); // sums are in float64
  return ([x, scale], make) =>
    normalized(make, 'RMSNormalization', x as Value, axis, epsilon, scale as Value);
}

/** Adds, and then normalizes. */
const skipNormalization =
  (name: string) =>
  (attributes: Attributes, _: number, node: OnnxNode): Compute => {
    const epsilon = attributes.float('epsilon', Math.fround(1e-12));
    if (node.outputs[1] || node.outputs[2])
      throw unsupported(node, 'returns statistics, which is not supported');
    return ([x, skip, gamma, ...rest], make) => {
      const [beta, bias] = name === 'RMSNormalization' ? [undefined, rest[0]] : rest;
      let sum = broadcasted(make, 'Add', [x as Value, skip as Value]);
      if (bias) sum = accumulated(make, 'Add', sum, bias);
      mustBe('skip', sum.shape, (x as Value).shape);
      const [y] = normalized(make, name, sum, -1, epsilon, gamma as Value, beta);
      return [y, undefined, undefined, sum] as Value[];
    };
  };

function embedLayerNormalization(attributes: Attributes): Compute {
  const epsilon = attributes.float('epsilon', Math.fround(1e-12));
  refuseAttributes(attributes, 'mask_index_type');
  return ([ids, segments, words, positions, types, gamma, beta, mask, given], make) => {
    const { shape } = ids as Value;
    mustBe('input_ids', shape, ['batch', 'rows']);
    const [batch, rows] = shape as [number, number];
    const places = given ?? counted('int32', rows);
    const tables = [gathered(make, words as Value, ids as Value)];
    tables.push(gathered(make, positions as Value, places));
    if (segments && types) tables.push(gathered(make, types, segments));
    const sum = tables.reduce((sum, each) => accumulated(make, 'Add', sum, each));
    mustBe('embedding', sum.shape, [...shape, 'columns']);
    const [y] = normalized(make, 'LayerNormalization', sum, -1, epsilon, gamma as Value, beta);
    if (mask) mustBe('mask', mask.shape, shape);
    // The sum of each row of the mask, or 0.
    const count = mask
      ? computed(make, 'int32', [batch], [mask], {
          name: 'ReduceSum',
          dims: [batch, 1, rows],
          strides: [
            [rows, 1, 1],
            [1, 1, 0],
          ],
        })
      : spread(make, scalar('int32', 0), [batch]);
    return [y, count, sum] as Value[];
  };
}

const biasGelu: Compute = ([a, b], make) =>
  broadcasted(make, 'Gelu', [broadcasted(make, 'Add', [a as Value, b as Value])]);

const row = (name: string, inputs: string, compile: Row['compile'], overwrites = 0): Row => ({
  name,
  inputs,
  overwrites,
  compile,
});

/** @internal The operators of this file. */
export const transformers: readonly Row[] = [
  row(
    'Attention@23',
    'Q:half K:first V:first attn_mask:mask? past_key:first? past_value:first? ' +
      'nonpad_kv_seqlen:int64?@24 > 4',
    attention,
  ),
  row('RMSNormalization@23', 'X:float scale:same', rmsNormalization, 1),
  row('SimplifiedLayerNormalization@1', 'X:float scale:same', rmsNormalization, 1),
  row(
    'RotaryEmbedding@23',
    'X:half cos_cache:first sin_cache:first position_ids:int64?',
    rotaryEmbedding(true),
  ),
  row(
    'com.microsoft.RotaryEmbedding',
    'input:half position_ids:int64 cos_cache:first sin_cache:first',
    rotaryEmbedding(false),
  ),
  row(
    'com.microsoft.SkipLayerNormalization',
    'input:float skip:same gamma:same beta:same? bias:same? > 4',
    skipNormalization('LayerNormalization'),
  ),
  row(
    'com.microsoft.SkipSimplifiedLayerNormalization',
    'input:float skip:same gamma:same bias:same? > 4',
    skipNormalization('RMSNormalization'),
  ),
  row(
    'com.microsoft.EmbedLayerNormalization',
    'input_ids:int32 segment_ids:int32? word_embedding:float position_embedding:same ' +
      'segment_embedding:same? gamma:same beta:same mask:int32? position_ids:int32? > 3',
    embedLayerNormalization,
  ),
  row(
    'com.microsoft.MultiHeadAttention',
    'query:half key:first value:first bias:first? key_padding_mask:int32? ' +
      'attention_bias:first? past_key:first? past_value:first? > 3',
    multiHeadAttention,
  ),
  row(
    'com.microsoft.GroupQueryAttention',
    'query:half key:first? value:first? past_key:first? past_value:first? ' +
      'seqlens_k:int32 total_sequence_length:int32 cos_cache:first? sin_cache:first? ' +
      'position_ids:int64? attention_bias:first? > 3',
    groupQueryAttention,
  ),
  // of the product that `expand` makes of its first inputs
  row(
    'com.microsoft.Attention',
    'product:half mask_index:int32? past:first? attention_bias:first? > 2',
    attentionOfProduct,
  ),
  row('com.microsoft.BiasGelu', 'A:float B:same', () => biasGelu),
];
