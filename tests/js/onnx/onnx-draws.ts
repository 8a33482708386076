/** Random problems of each operator of models. */
import type { OnnxDType } from 'wgemm/onnx';
import { count, type Input, ints, type NodeCase, randomTensor, tensor } from './onnx-nodes.js';
import type { Random } from '../support/random.js';
import { linearDraws } from './linear-draws.js';
import { transformerDraws } from './transformer-draws.js';

export type Draw = (random: Random) => Omit<NodeCase, 'op' | 'domain'>;

const f32 = 'float32';
const opset = (random: Random, ...versions: number[]) => random.pick(versions);
/** In about one shape in eight, a size is 0. */
const shapeOf = (random: Random, least = 0, most?: number) => {
  const shape = fullShapeOf(random, least, most);
  if (shape.length > 0 && random.next() < 1 / 8) shape[random.between(0, shape.length - 1)] = 0;
  return shape;
};
/** In about one shape in ten, there are 5 or 6 axes, if `most` is not given. */
const fullShapeOf = (random: Random, least = 0, most?: number) => {
  if (most === undefined && random.next() < 0.1)
    return Array.from({ length: random.pick([5, 6]) }, () => random.pick([1, 2, 3]));
  return Array.from({ length: random.between(least, most ?? 4) }, () =>
    random.pick([1, 2, 3, 5, 7]),
  );
};
/** A shape that broadcasts with another. */
const partOf = (random: Random, shape: readonly number[]) =>
  shape
    .map((size) => (random.next() < 0.4 ? 1 : size))
    .slice(random.next() < 0.5 ? random.between(0, shape.length) : 0);
const axisOf = (random: Random, rank: number) => random.between(-rank, rank - 1);
const floatsOf = ['float32', 'float32', 'float64'] as const;

const unary =
  (
    versions: number[],
    attributes: (random: Random) => NodeCase['attributes'] = () => ({}),
    types: readonly OnnxDType[] = [f32],
    most = 8,
  ): Draw =>
  (random) => ({
    opset: opset(random, ...versions),
    inputs: [randomTensor(random, random.pick(types), shapeOf(random), most)],
    attributes: attributes(random),
  });
const binary =
  (types: readonly OnnxDType[], change: (b: Input) => void = () => undefined): Draw =>
  (random) => {
    const dtype = random.pick(types);
    const shape = shapeOf(random);
    const [a, b] = [partOf(random, shape), partOf(random, shape)].map((shape) =>
      randomTensor(random, dtype, shape),
    );
    change(b as Input);
    return { opset: opset(random, 7, 13, 14, 17), inputs: [a as Input, b as Input] };
  };
const softmax: Draw = (random) => {
  const version = opset(random, 6, 7, 11, 12, 13, 17);
  const shape = shapeOf(random, 1);
  const axis = version < 11 ? random.between(0, shape.length - 1) : axisOf(random, shape.length);
  return {
    opset: version,
    inputs: [randomTensor(random, random.pick(floatsOf), shape, 20)],
    attributes: random.next() < 0.2 && (version > 12 || shape.length > 1) ? {} : { axis },
  };
};
const arithmetic = ['float32', 'float32', 'float64', 'int32', 'int64'] as const;
const nonZero = ({ data }: Input) =>
  (data as Int32Array).forEach((value, i) => {
    if (!value) (data as Int32Array)[i] = typeof value === 'bigint' ? (3n as never) : 3;
  });
const all = [
  'float32',
  'float64',
  'float16',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'int8',
  'uint8',
  'bool',
] as const;
const anyShape = [
  'float32',
  'float64',
  'int32',
  'int64',
  'int8',
  'uint8',
  'bool',
  'float16',
] as const;
const codes = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
  float64: 11,
  uint32: 12,
  uint64: 13,
};
const small = ({ data, dtype }: Input) => {
  if (!dtype.includes('float'))
    for (let i = 0; i < data.length; ++i)
      (data as Int32Array)[i] = (
        typeof data[i] === 'bigint' ? (data[i] as bigint) % 100n : (data[i] as number) % 100
      ) as number;
};

/** Few different elements, so that two of them are often equal. */
const coarse = (random: Random, dtype: OnnxDType, shape: readonly number[]) => {
  const least = dtype.startsWith('u') || dtype === 'bool' ? 0 : -2;
  const most = dtype === 'bool' ? 1 : 2;
  const odd = dtype.includes('float') ? [NaN, Infinity, -Infinity, 0.5] : [1];
  const values = Array.from({ length: count(shape) }, () =>
    random.next() < 0.1 ? random.pick(odd) : random.between(least, most),
  );
  return tensor(dtype, shape, values);
};
/** Inputs of one type, which broadcast. */
const several =
  (versions: number[], types: readonly OnnxDType[], most: number): Draw =>
  (random) => {
    const version = opset(random, ...versions);
    const dtype = version < 9 && types.length > 1 ? f32 : random.pick(types);
    const shape = shapeOf(random);
    const inputs = Array.from({ length: most === 2 ? 2 : random.between(1, most) }, () =>
      coarse(random, dtype, partOf(random, shape)),
    );
    return { opset: version, inputs };
  };
const numbers = ['float32', 'float32', 'float64', 'int32', 'int64'] as const;
const positive = ({ data }: Input) =>
  (data as Float32Array).forEach((value, i) => ((data as Float32Array)[i] = Math.abs(value)));
const positively =
  (draw: Draw): Draw =>
  (random) => {
    const drawn = draw(random);
    positive(drawn.inputs[0] as Input);
    return drawn;
  };

const anyPad = ['float32', 'float64', 'int32', 'int64', 'int8', 'uint8', 'bool'] as const;

/** @param from the opset where the axes become an input */
const reduction =
  (
    from: number,
    types: readonly OnnxDType[],
    most = 4,
    change: (value: number) => number = (value) => value,
  ): Draw =>
  (random) => {
    const version = opset(random, 6, 7, 11, 13, 18);
    const shape = fullShapeOf(random, 1); // of no elements the runtime keeps axes
    const axes = shape
      .map((_, axis) => axis)
      .filter(() => random.next() < 0.5)
      .map((axis) => (version >= 11 && random.next() < 0.5 ? axis - shape.length : axis));
    const keepdims = random.between(0, 1);
    const dtype = random.pick(
      version < 12 ? types.filter((each) => !/int8|int64/.test(each)) : types,
    );
    const x = randomTensor(random, dtype, shape, most);
    if (dtype.startsWith('int')) small(x);
    else (x.data as Float32Array).forEach((value, i, all) => (all[i] = change(value)));
    if (version < from)
      return {
        opset: version,
        inputs: [x],
        attributes: axes.length ? { axes, keepdims } : { keepdims },
      };
    return {
      opset: version,
      inputs: [x, ints(axes)],
      attributes: { keepdims, noop_with_empty_axes: axes.length ? random.between(0, 1) : 0 },
    };
  };

/** ArgMax and ArgMin of elements of which many are equal. */
const place: Draw = (random) => {
  const version = opset(random, 6, 11, 12, 13);
  const shape = fullShapeOf(random, 1);
  const axis = version < 11 ? random.between(0, shape.length - 1) : axisOf(random, shape.length);
  const dtype = random.pick([...floatsOf, 'int32', 'int8', 'uint8'] as const);
  const x = randomTensor(random, dtype, shape);
  (x.data as Float32Array).forEach((value, i, all) => (all[i] = Math.round(value) % 4));
  return {
    opset: version,
    inputs: [x],
    attributes: {
      axis,
      keepdims: random.between(0, 1),
      ...(version > 11 && { select_last_index: random.between(0, 1) }),
    },
  };
};

/** Data, and indices along an axis. */
function elements(random: Random) {
  const shape = fullShapeOf(random, 1);
  const axis = axisOf(random, shape.length);
  const along = shape.map((size, i) =>
    i === (axis + shape.length) % shape.length ? random.between(1, size) : size,
  );
  const places = Array.from({ length: count(along) }, () =>
    axisOf(random, shape.at(axis) as number),
  );
  return {
    data: randomTensor(
      random,
      random.pick(['float32', 'float64', 'int32', 'int64', 'bool']),
      shape,
    ),
    indices: tensor(random.pick(['int64', 'int32']), along, places),
    axis,
  };
}

/** Makes the indices along an axis distinct: they count up. */
function distinct({ shape, data }: Input, axis: number, from: readonly number[]): void {
  const inner = count(shape.slice(axis < 0 ? axis + shape.length : axis).slice(1));
  const [size, all] = [shape.at(axis) as number, from.at(axis) as number];
  (data as Int32Array).forEach((_, i, to) => {
    const index = ((Math.floor(i / inner) % size) + 1) % all;
    to[i] = (data instanceof BigInt64Array ? BigInt(index) : index) as number;
  });
}

const scatterReduction = (random: Random, version: number): string | undefined =>
  version < 16
    ? undefined
    : random.pick(['none', 'add', 'mul', ...(version < 18 ? [] : ['max', 'min'])]);

/** Data, and indices of several axes after the first ones. */
function tuples(random: Random, shape: readonly number[], batch: number): Input[] {
  const depth = random.between(1, shape.length - batch);
  const rows = [...shape.slice(0, batch), ...fullShapeOf(random, 0, 2)];
  const indices = Array.from({ length: count(rows) }, () =>
    shape.slice(batch, batch + depth).map((size) => axisOf(random, size)),
  ).flat();
  const dtype = random.pick(['float32', 'float64', 'int32', 'int64', 'bool'] as const);
  return [randomTensor(random, dtype, shape), tensor('int64', [...rows, depth], indices)];
}

/** By operator: how a problem is drawn, and its bounds: in units in the last place, and absolute. */
export const draws: Record<string, readonly [Draw, ulps?: number, absolute?: number]> = {
  Relu: [unary([14], undefined, ['float32', 'float64', 'int32'])],
  LeakyRelu: [
    unary([6, 7, 16], (random) => (random.next() < 0.5 ? {} : { alpha: { float: 0.3 } })),
  ],
  Sigmoid: [unary([6, 7, 13], undefined, ['float32', 'float64']), 4, 2e-7],
  Tanh: [unary([6, 7, 13], undefined, ['float32', 'float64']), 4, 3e-7],
  Neg: [unary([6, 13], undefined, ['float32', 'float64', 'int32', 'int64', 'int8'])],
  Sqrt: [positively(unary([6, 7, 13], undefined, ['float32', 'float64']))],
  Erf: [unary([9, 13], undefined, [f32], 4), 4, 2e-7],
  Gelu: [
    unary([20], (random) => random.pick([{}, { approximate: 'tanh' }, { approximate: 'none' }]), [
      f32,
    ]),
    6,
    1e-6,
  ],
  'com.microsoft.Gelu': [unary([17]), 6, 1e-6],
  'com.microsoft.FastGelu': [
    (random) => {
      const shape = shapeOf(random, 1);
      const bias = random.pick([null, randomTensor(random, f32, shape.slice(-1))]);
      return { opset: 17, inputs: [randomTensor(random, f32, shape), ...(bias ? [bias] : [])] };
    },
    6,
    1e-6,
  ],
  Clip: [
    (random) => {
      const version = opset(random, 6, 7, 11, 12, 13);
      const dtype =
        version < 12
          ? f32
          : random.pick(['float32', 'float64', 'int32', 'int64', 'int8', 'uint8'] as const);
      const x = randomTensor(random, dtype, shapeOf(random));
      if (version < 11)
        return {
          opset: version,
          inputs: [x],
          attributes: random.pick([
            {},
            { min: { float: -1 } },
            { min: { float: -0.5 }, max: { float: 2 } },
          ]),
        };
      const [least, most] = dtype === 'uint8' ? [5, 200] : [-2, 3];
      return {
        opset: version,
        inputs: [x, random.pick([null, tensor(dtype, [], [least])]), tensor(dtype, [], [most])],
      };
    },
  ],
  Add: [binary(arithmetic)],
  Sub: [binary(arithmetic)],
  Mul: [binary(arithmetic)],
  Div: [binary(arithmetic, nonZero)],
  Pow: [
    (random) => {
      const shape = shapeOf(random);
      const x = randomTensor(random, f32, partOf(random, shape));
      (x.data as Float32Array).forEach(
        (value, i) => ((x.data as Float32Array)[i] = Math.abs(value)),
      );
      const y = random.pick([
        tensor(f32, [], [2]),
        tensor(f32, [1], [0.5]),
        randomTensor(random, f32, partOf(random, shape)),
        ...(random.next() < 0.5 ? [tensor('int64', [], [3])] : []),
      ]);
      return { opset: opset(random, 12, 13, 15), inputs: [x, y] };
    },
    2,
  ],
  Softmax: [softmax, 6, 1e-7],
  LogSoftmax: [softmax, 6, 4e-6],
  LayerNormalization: [
    (random) => {
      const shape = fullShapeOf(random, 1);
      const axis = axisOf(random, shape.length);
      const inner = shape.slice(axis);
      // The runtime refuses rows of no elements.
      if (inner.length < shape.length && random.next() < 1 / 8) shape[0] = 0;
      const dtype = random.pick(floatsOf);
      // Scale and B may broadcast
      const part = random.next() < 0.7 ? inner : inner.map((size) => (size > 2 ? 1 : size));
      const bias = random.next() < 0.3 ? [] : [randomTensor(random, dtype, part)];
      return {
        opset: opset(random, 1, 9, 16, 17),
        inputs: [randomTensor(random, dtype, shape), randomTensor(random, dtype, part), ...bias],
        attributes: { axis, epsilon: { float: 0.01 } },
        outputs: random.pick([1, 3]),
      };
    },
    16,
    4e-6,
  ],
  ReduceMean: [reduction(18, floatsOf), 4, 1e-6],
  ReduceSum: [reduction(13, [...floatsOf, 'int32', 'int64']), 16, 1e-4],
  ReduceMax: [reduction(18, [...floatsOf, 'int32', 'int64', 'int8', 'uint8'])],
  ReduceMin: [reduction(18, [...floatsOf, 'int32', 'int64', 'int8', 'uint8'])],
  ReduceProd: [reduction(18, [f32, f32], 2), 512, 1e-30],
  ReduceL1: [reduction(18, [f32, f32, 'int32']), 32, 1e-5],
  ReduceSumSquare: [reduction(18, [...floatsOf, 'int32']), 32, 1e-5],
  // The sum of squares of integers must not wrap.
  ReduceL2: [reduction(18, [f32]), 8, 1e-6],
  ReduceLogSum: [reduction(18, [f32], 4, Math.abs), 8, 2e-6],
  ReduceLogSumExp: [reduction(18, floatsOf), 8, 2e-6],
  ArgMax: [place],
  ArgMin: [place],
  TopK: [
    (random) => {
      const version = opset(random, 6, 9, 10, 11, 24);
      const shape = fullShapeOf(random, 1);
      const axis =
        version < 11 ? random.between(0, shape.length - 1) : axisOf(random, shape.length);
      const dtype = version < 11 ? f32 : random.pick([...floatsOf, 'int32', 'int64'] as const);
      const x = randomTensor(random, dtype, shape);
      if (dtype.startsWith('int')) small(x);
      else (x.data as Float32Array).forEach((v, i, all) => (all[i] = Math.round(v)));
      const k = random.between(0, shape.at(axis) as number);
      if (version < 10)
        return { opset: version, inputs: [x], attributes: { axis, k: Math.max(k, 1) }, outputs: 2 };
      const order = version < 11 ? {} : { largest: random.between(0, 1), sorted: 1 };
      return {
        opset: version,
        inputs: [x, ints([k])],
        attributes: { axis, ...order },
        outputs: 2,
      };
    },
  ],
  CumSum: [
    (random) => {
      const shape = shapeOf(random, 1);
      const axis = axisOf(random, shape.length);
      return {
        opset: opset(random, 11, 14),
        inputs: [
          randomTensor(random, random.pick([...floatsOf, 'int32', 'int64']), shape),
          tensor(random.pick(['int32', 'int64']), [], [axis]),
        ],
        attributes: { exclusive: random.between(0, 1), reverse: random.between(0, 1) },
      };
    },
    8,
    2e-6,
  ],
  Pad: [
    (random) => {
      const mode = random.pick(['constant', 'constant', 'edge', 'reflect', 'wrap'] as const);
      const version = mode === 'wrap' ? 19 : opset(random, 6, 11, 13, 18, 19, 24);
      const shape = mode === 'constant' ? shapeOf(random, 1) : fullShapeOf(random, 1);
      const most = (size: number) => (mode === 'constant' ? 3 : size - 1);
      const least = (size: number) => (mode === 'constant' ? -(size >> 1) : 0);
      const pads = [...shape, ...shape].map((size) => random.between(least(size), most(size)));
      const types = version < 13 ? anyPad.filter((type) => type !== 'bool') : anyPad;
      const dtype = version < 11 ? f32 : random.pick(types);
      const x = randomTensor(random, dtype, shape);
      if (version < 11)
        return { opset: version, inputs: [x], attributes: { mode, pads, value: { float: 1.5 } } };
      const constant = random.pick([null, randomTensor(random, dtype, [])]);
      if (version < 18 || random.next() < 0.4)
        return { opset: version, inputs: [x, ints(pads), constant], attributes: { mode } };
      const axes = shape.map((_, axis) => axis).filter(() => random.next() < 0.6);
      if (axes.length === 0) axes.push(0);
      const some = [...axes, ...axes.map((axis) => axis + shape.length)].map((i) => pads[i] ?? 0);
      const counted = axes.map((axis) => (random.next() < 0.5 ? axis : axis - shape.length));
      return {
        opset: version,
        inputs: [x, ints(some), constant, ints(counted)],
        attributes: { mode },
      };
    },
  ],
  Trilu: [
    (random) => {
      const dtype = random.pick(['float32', 'float64', 'int64', 'bool'] as const);
      const k = random.next() < 0.4 ? [] : [tensor('int64', [], [random.between(-4, 4)])];
      return {
        opset: 14,
        inputs: [randomTensor(random, dtype, shapeOf(random, 2)), ...k],
        attributes: random.pick([{}, { upper: 0 }, { upper: 1 }]),
      };
    },
  ],
  Tile: [
    (random) => {
      const shape = shapeOf(random, 1);
      const dtype = random.pick(['float32', 'float64', 'int32', 'int64', 'int8', 'uint8', 'bool']);
      return {
        opset: opset(random, 6, 13),
        inputs: [
          randomTensor(random, dtype as OnnxDType, shape),
          ints(shape.map(() => random.pick([1, 1, 2, 3, 0]))),
        ],
      };
    },
  ],
  GatherElements: [
    (random) => {
      const { data, indices, axis } = elements(random);
      return { opset: opset(random, 11, 13), inputs: [data, indices], attributes: { axis } };
    },
  ],
  ScatterElements: [
    (random) => {
      const { data, indices, axis } = elements(random);
      const version = opset(random, 11, 13, 16, 18);
      const reduction = scatterReduction(random, version);
      if (!reduction || reduction === 'none') distinct(indices, axis, data.shape);
      const { dtype } = data;
      return {
        opset: version,
        inputs: [data, indices, randomTensor(random, dtype, indices.shape)],
        attributes: { axis, ...(reduction && dtype !== 'bool' && { reduction }) },
      };
    },
    2,
    1e-6,
  ],
  GatherND: [
    (random) => {
      const version = opset(random, 11, 12, 13);
      const shape = fullShapeOf(random, 1);
      const batch = version < 12 ? 0 : random.between(0, shape.length - 1);
      const inputs = tuples(random, shape, batch);
      return { opset: version, inputs, attributes: version < 12 ? {} : { batch_dims: batch } };
    },
  ],
  ScatterND: [
    (random) => {
      const version = opset(random, 11, 13, 16, 18);
      const shape = fullShapeOf(random, 1);
      const reduction = scatterReduction(random, version);
      const dtype = random.pick(['float32', 'float64', 'int32', 'int64'] as const);
      const depth = random.between(1, shape.length);
      // Without a reduction, no place is written twice.
      const isOnce = !reduction || reduction === 'none';
      const rows = isOnce ? random.between(0, 1) : random.between(0, 4);
      const indices = Array.from({ length: rows }, () =>
        shape.slice(0, depth).map((size) => axisOf(random, size)),
      ).flat();
      return {
        opset: version,
        inputs: [
          randomTensor(random, dtype, shape),
          tensor('int64', [rows, depth], indices),
          randomTensor(random, dtype, [rows, ...shape.slice(depth)]),
        ],
        attributes: reduction ? { reduction } : {},
      };
    },
    2,
    1e-6,
  ],
  OneHot: [
    (random) => {
      const shape = fullShapeOf(random, 1, 3);
      const depth = random.pick([1, 2, 3, 5]);
      const [type, values] = random.pick([
        ['int64', 'float32'],
        ['int64', 'int64'],
        ['int32', 'float32'],
        ['float32', 'float32'],
        ['int64', 'int32'],
      ] as const);
      const indices = Array.from({ length: count(shape) }, () => random.between(-depth - 1, depth));
      return {
        opset: opset(random, 9, 11),
        inputs: [
          tensor(type, shape, indices),
          tensor(type === 'int32' ? 'int32' : type, [], [depth]),
          randomTensor(random, values, [2]),
        ],
        attributes: { axis: random.between(-shape.length - 1, shape.length) },
      };
    },
  ],
  NonZero: [
    (random) => {
      const dtype = random.pick(['float32', 'int32', 'int64', 'uint8', 'bool'] as const);
      const x = randomTensor(random, dtype, shapeOf(random, 1));
      (x.data as Int32Array).forEach((_, i, all) => {
        if (random.next() < 0.4) all[i] = (dtype === 'int64' ? 0n : 0) as number;
      });
      return { opset: opset(random, 9, 13), inputs: [x] };
    },
  ],
  Flatten: [
    (random) => {
      const shape = shapeOf(random);
      return {
        opset: 13,
        inputs: [randomTensor(random, random.pick(anyShape), shape)],
        attributes: { axis: random.between(-shape.length, shape.length) },
      };
    },
  ],
  Reshape: [
    (random) => {
      const shape = [2, 3, 4, 5];
      return {
        opset: opset(random, 6, 7, 13, 14),
        inputs: [
          randomTensor(random, random.pick(anyShape), shape),
          ints(random.pick([[6, 20], [0, -1], [0, 0, -1], [-1], [120, 1, 1], [3, 8, -1]])),
        ],
      };
    },
  ],
  Transpose: [
    (random) => {
      const shape = shapeOf(random, 0, 5);
      const perm = shape.map((_, axis) => axis);
      for (let i = perm.length - 1; i > 0; --i) {
        const j = random.between(0, i);
        [perm[i], perm[j]] = [perm[j] as number, perm[i] as number];
      }
      return {
        opset: opset(random, 6, 7, 13),
        inputs: [randomTensor(random, random.pick(anyShape), shape)],
        attributes: random.next() < 0.2 || !shape.length ? {} : { perm },
      };
    },
  ],
  Squeeze: [
    (random) => {
      const version = opset(random, 6, 7, 11, 13);
      const x = randomTensor(random, random.pick(anyShape), [1, 3, 1, 2, 1]);
      const axes = random.pick([
        undefined,
        [0],
        [0, 2],
        [4, 0],
        ...(version > 10 ? [[-1], [-3, 0]] : []),
      ]);
      if (version < 13) return { opset: version, inputs: [x], attributes: axes ? { axes } : {} };
      return { opset: version, inputs: axes ? [x, ints(axes)] : [x] };
    },
  ],
  Unsqueeze: [
    (random) => {
      const version = opset(random, 6, 7, 11, 13);
      const x = randomTensor(random, random.pick(anyShape), [3, 2]);
      const axes = random.pick([
        [0],
        [0, 2],
        [3, 0],
        [1, 2],
        ...(version > 10 ? [[-1], [-3, 0]] : []),
      ]);
      return version < 13
        ? { opset: version, inputs: [x], attributes: { axes } }
        : { opset: version, inputs: [x, ints(axes)] };
    },
  ],
  Concat: [
    (random) => {
      const dtype = random.pick(anyShape);
      const shape = shapeOf(random, 1);
      const axis = axisOf(random, shape.length);
      const inputs = Array.from({ length: random.between(1, 4) }, () =>
        randomTensor(
          random,
          dtype,
          shape.map((size, i) =>
            i === (axis + shape.length) % shape.length ? random.between(1, 4) : size,
          ),
        ),
      );
      return { opset: opset(random, 11, 13), inputs, attributes: { axis } };
    },
  ],
  Slice: [
    (random) => {
      const version = opset(random, 6, 7, 10, 11, 13);
      const shape = shapeOf(random, 1);
      const x = randomTensor(
        random,
        version < 10 ? f32 : random.pick(['float32', 'float64', 'int32', 'int64']),
        shape,
      );
      const axes = shape.map((_, axis) => axis).filter(() => random.next() < 0.7);
      if (!axes.length) axes.push(0);
      const draw = () =>
        axes.map(() =>
          random.pick([
            random.between(-8, 8),
            0,
            9_223_372_036_854_775_807n,
            -9_223_372_036_854_775_807n,
          ]),
        );
      const [starts, ends] = [draw(), draw()];
      if (version < 10) return { opset: version, inputs: [x], attributes: { starts, ends, axes } };
      const steps = axes.map(() => random.pick([1, 1, 2, 3, -1, -2]));
      // With a step back, the runtime reads the greatest end as none, against the specification.
      steps.forEach((step, i) => {
        if (step < 0 && Number(ends[i]) > 8) ends[i] = 0;
      });
      const given =
        version > 10
          ? axes.map((axis) => (random.next() < 0.5 ? axis - shape.length : axis))
          : axes;
      return {
        opset: version,
        inputs: [
          x,
          ints(starts),
          ints(ends),
          ints(given),
          ...(random.next() < 0.8 ? [ints(steps)] : []),
        ],
      };
    },
  ],
  Split: [
    (random) => {
      const version = opset(random, 6, 7, 11, 13, 18);
      const dtype = random.pick(['float32', 'int32', 'int64', 'uint8'] as const);
      if (version === 18 && random.next() < 0.5)
        return {
          opset: 18,
          inputs: [randomTensor(random, dtype, [2, 8, 3])],
          attributes: { axis: 1, num_outputs: 3 },
          outputs: 3,
        };
      const x = randomTensor(random, dtype, [2, 6, 3]);
      const split = random.pick([
        [2, 2, 2],
        [1, 2, 3],
        [4, 0, 2],
      ]);
      const axis = version > 7 ? random.pick([1, -2]) : 1;
      if (version < 13)
        return {
          opset: version,
          inputs: [x],
          attributes: random.next() < 0.3 ? { axis } : { axis, split },
          outputs: 3,
        };
      return { opset: version, inputs: [x, ints(split)], attributes: { axis }, outputs: 3 };
    },
  ],
  Gather: [
    (random) => {
      const shape = shapeOf(random, 1);
      const axis = axisOf(random, shape.length);
      const size = shape.at(axis) as number;
      const picked = size > 0 ? shapeOf(random, 0, 2) : [3, 0];
      const indices = tensor(
        random.pick(['int64', 'int32']),
        picked,
        Array.from({ length: count(picked) }, () => axisOf(random, size)),
      );
      return {
        opset: opset(random, 11, 13),
        inputs: [randomTensor(random, random.pick(anyShape), shape), indices],
        attributes: { axis },
      };
    },
  ],
  Identity: [unary([6, 7, 13, 14], undefined, anyShape)],
  Shape: [
    (random) => {
      const version = opset(random, 6, 7, 13, 15);
      const x = randomTensor(random, random.pick(anyShape), shapeOf(random));
      return {
        opset: version,
        inputs: [x],
        attributes:
          version < 15 ? {} : random.pick([{}, { start: 1 }, { start: -2, end: -1 }, { end: 10 }]),
      };
    },
  ],
  Expand: [
    (random) => {
      const shape = shapeOf(random);
      return {
        opset: opset(random, 8, 13),
        inputs: [
          randomTensor(
            random,
            random.pick(['float32', 'float64', 'int32', 'int64', 'bool']),
            partOf(random, shape),
          ),
          ints(random.next() < 0.5 ? shape : [2, 1, ...shape]),
        ],
      };
    },
  ],
  Where: [
    (random) => {
      const shape = shapeOf(random);
      const dtype = random.pick(['float32', 'float64', 'int32', 'int64', 'uint8'] as const);
      return {
        opset: opset(random, 9, 16),
        inputs: [
          randomTensor(random, 'bool', partOf(random, shape)),
          randomTensor(random, dtype, partOf(random, shape)),
          randomTensor(random, dtype, partOf(random, shape)),
        ],
      };
    },
  ],
  Cast: [
    (random) => {
      const from = random.pick(all);
      const to = random.pick(all);
      const x = randomTensor(
        random,
        from,
        shapeOf(random),
        from.includes('float') && to.startsWith('u') ? 1 : 100,
      );
      if (from.includes('float') && to.startsWith('u'))
        (x.data as Float32Array).forEach(
          (value, i) => ((x.data as Float32Array)[i] = Math.abs(value) * 100),
        );
      if (to.includes('float')) small(x);
      return { opset: opset(random, 6, 9, 13), inputs: [x], attributes: { to: codes[to] } };
    },
  ],
  Dropout: [
    (random) => {
      const version = opset(random, 7, 10, 12, 13);
      return {
        opset: version,
        inputs: [
          randomTensor(random, f32, shapeOf(random)),
          ...(version < 12 ? [] : [tensor(f32, [], [0.3])]),
        ],
        outputs: version < 12 ? 1 : 2, // the runtime has another mask before opset 12

        attributes: version < 12 ? { ratio: { float: 0.3 } } : {},
      };
    },
  ],
  QuantizeLinear: [
    (random) => {
      const version = opset(random, 10, 13, 19, 21);
      const dtype = random.pick(['int8', 'uint8'] as const);
      return {
        opset: version,
        ...quantization(random, version, dtype, (shape) => randomTensor(random, f32, shape, 50)),
      };
    },
  ],
  DequantizeLinear: [
    (random) => {
      const version = opset(random, 10, 13, 19, 21);
      const dtype = random.pick(['int8', 'uint8'] as const);
      return {
        opset: version,
        ...quantization(random, version, dtype, (shape) => randomTensor(random, dtype, shape)),
      };
    },
  ],
  DynamicQuantizeLinear: [
    (random) => ({
      opset: 11,
      inputs: [randomTensor(random, f32, shapeOf(random), random.pick([1, 100]))],
      outputs: 3,
    }),
  ],
  QLinearMatMul: [linearProduct],
  Abs: [unary([6, 7, 13], undefined, ['float32', 'float64', 'int32', 'int64', 'int8', 'uint8'])],
  Sign: [unary([9, 13], undefined, ['float32', 'float64', 'int32', 'int64', 'uint8'])],
  Floor: [unary([6, 7, 13], undefined, floatsOf)],
  Ceil: [unary([6, 7, 13], undefined, floatsOf)],
  Round: [
    (random) => {
      const drawn = unary([11, 22], undefined, floatsOf)(random);
      const data = (drawn.inputs[0] as Input).data as Float32Array;
      data.forEach((value, i) => (data[i] = Math.round(value) / 2));
      return drawn;
    },
  ],
  Reciprocal: [unary([6, 7, 13], undefined, floatsOf)],
  Exp: [unary([6, 7, 13], undefined, floatsOf, 30), 3],
  Log: [positively(unary([6, 7, 13], undefined, floatsOf, 100)), 4, 2e-7],
  Sin: [unary([7, 22], undefined, floatsOf, 1000), 2, 2e-7],
  Cos: [unary([7, 22], undefined, [f32], 1000), 2, 2e-7],
  Softplus: [unary([6, 7, 22], undefined, floatsOf), 4, 1e-6],
  Softsign: [unary([6, 7, 22], undefined, [f32]), 2],
  Mish: [unary([18, 22], undefined, [f32]), 4, 2e-6],
  Elu: [unary([6, 22], (random) => random.pick([{}, { alpha: { float: 0.3 } }])), 4, 1e-6],
  HardSigmoid: [
    unary([6, 22], (random) =>
      random.pick([{}, { alpha: { float: 0.3 } }, { beta: { float: 0.1 } }]),
    ),
    2,
    2e-7,
  ],
  HardSwish: [unary([14, 22]), 4, 1e-6],
  ThresholdedRelu: [unary([10, 22], (random) => random.pick([{}, { alpha: { float: -0.5 } }]))],
  'com.microsoft.QuickGelu': [
    unary([17], (random) => random.pick([{}, { alpha: { float: 1 } }])),
    6,
    2e-6,
  ],
  PRelu: [
    (random) => {
      const version = opset(random, 7, 9, 16);
      const shape = shapeOf(random);
      const dtype = version < 9 ? f32 : random.pick(arithmetic);
      const slope = randomTensor(random, dtype, partOf(random, shape));
      return {
        opset: version,
        inputs: [randomTensor(random, dtype, shape), slope],
      };
    },
  ],
  Equal: [several([11, 13, 19], [...numbers, 'bool'], 2)],
  Less: [several([9, 13], numbers, 2)],
  LessOrEqual: [several([12, 16], numbers, 2)],
  Greater: [several([9, 13], numbers, 2)],
  GreaterOrEqual: [several([12, 16], numbers, 2)],
  And: [several([7], ['bool'], 2)],
  Or: [several([7], ['bool'], 2)],
  Xor: [several([7], ['bool'], 2)],
  Not: [unary([6, 7], undefined, ['bool'])],
  IsNaN: [
    (random) => ({
      opset: opset(random, 9, 13, 20),
      inputs: [coarse(random, random.pick(floatsOf), shapeOf(random))],
    }),
  ],
  IsInf: [
    (random) => ({
      opset: opset(random, 10, 20),
      inputs: [coarse(random, random.pick(floatsOf), shapeOf(random))],
      attributes: random.pick([
        {},
        { detect_negative: 0 },
        { detect_positive: 0 },
        { detect_negative: 0, detect_positive: 0 },
      ]),
    }),
  ],
  Min: [several([8, 12, 13], numbers, 4)],
  Max: [several([8, 12, 13], numbers, 4)],
  Sum: [several([8, 13], floatsOf, 4)],
  Mean: [several([8, 13], [f32], 4), 1],
  Mod: [
    (random) => {
      const dtype = random.pick(['float32', 'float64', 'int32', 'int64', 'int8', 'uint8'] as const);
      const shape = shapeOf(random);
      const [a, b] = [partOf(random, shape), partOf(random, shape)].map((shape) =>
        randomTensor(random, dtype, shape),
      ) as [Input, Input];
      for (const each of [a, b]) small(each); // the runtime computes int64 by float64
      nonZero(b);
      const fmod = dtype.includes('float') ? 1 : random.between(0, 1);
      return { opset: opset(random, 10, 13), inputs: [a, b], attributes: { fmod } };
    },
  ],
  Size: [unary([6, 13], undefined, anyShape)],
  CastLike: [
    (random) => {
      const dtype = random.pick(['float32', 'float64', 'int32', 'int64', 'bool'] as const);
      const x = randomTensor(
        random,
        random.pick(['float32', 'int32', 'int64'] as const),
        shapeOf(random),
        100,
      );
      if (dtype.includes('float')) small(x);
      return { opset: opset(random, 15, 19), inputs: [x, tensor(dtype, [1], [0])] };
    },
  ],
  Range: [
    (random) => {
      const dtype = random.pick(numbers);
      const scale = dtype.includes('float') ? 0.25 : 1;
      const values = [
        random.between(-9, 9),
        random.between(-20, 20),
        random.pick([1, 2, 3, -1, -4]),
      ];
      return {
        opset: 11,
        inputs: values.map((value) => tensor(dtype, [], [value * scale])),
      };
    },
  ],
  ConstantOfShape: [
    (random) => {
      const dtype = random.pick(all);
      return {
        opset: opset(random, 9, 20),
        inputs: [ints(shapeOf(random))],
        attributes: random.pick([{}, { value: { tensor: randomTensor(random, dtype, [1]) } }]),
      };
    },
  ],
  BatchNormalization: [
    (random) => {
      const version = opset(random, 7, 9, 14, 15);
      const shape = fullShapeOf(random, 2);
      const dtype = version > 13 ? f32 : random.pick(floatsOf);
      const parts = [0, 1, 2, 3].map(() => randomTensor(random, dtype, [shape[1] as number]));
      positive(parts[3] as Input);
      return {
        opset: version,
        inputs: [randomTensor(random, dtype, shape), ...parts],
        attributes: random.pick([{}, { epsilon: { float: 0.25 } }]),
      };
    },
    8,
    1e-4,
  ],
  InstanceNormalization: [
    (random) => {
      const shape = fullShapeOf(random, 3);
      const [scale, bias] = [0, 1].map(() => randomTensor(random, f32, [shape[1] as number]));
      return {
        opset: opset(random, 6, 22),
        inputs: [randomTensor(random, f32, shape), scale as Input, bias as Input],
        attributes: random.pick([{}, { epsilon: { float: 0.25 } }]),
      };
    },
    16,
    1e-4,
  ],
  MeanVarianceNormalization: [
    (random) => {
      const axes = random.pick([undefined, [0, 2, 3]]);
      const shape = [2, random.between(1, 4), random.pick([2, 3, 5]), 7];
      return {
        opset: opset(random, 9, 13),
        inputs: [randomTensor(random, f32, shape)],
        attributes: axes ? { axes } : {},
      };
    },
    16,
    1e-5,
  ],
  Constant: [constant],
  ...transformerDraws,
  ...linearDraws,
};

/** A problem of QLinearMatMul. The runtime has no kernel of int8 by uint8. */
function linearProduct(random: Random): ReturnType<Draw> {
  const dtype = random.pick(['uint8', 'uint8', 'int8'] as const);
  const stack = shapeOf(random, 0, 2);
  const [m, k, n] = [0, 1, 2].map(() => random.between(1, 20)) as [number, number, number];
  const a = randomTensor(random, dtype, [...stack, m, k]);
  const dtypeB = dtype === 'int8' ? dtype : random.pick(['uint8', 'int8'] as const);
  const b = randomTensor(random, dtypeB, [...random.pick([stack, []]), k, n]);
  const columns = b.shape.length === 2 ? random.pick([[], [n]]) : [];
  const scale = (shape: readonly number[], unit: number) => {
    const values = Array.from({ length: count(shape) }, () => unit * (0.5 + random.next()));
    return tensor(f32, shape, values);
  };
  return {
    opset: opset(random, 10, 21),
    inputs: [
      ...[a, scale([], 0.02), randomTensor(random, dtype, [])],
      ...[b, scale(columns, 0.02), randomTensor(random, dtypeB, columns)],
      ...[scale([], 2), randomTensor(random, dtype, [])],
    ],
  };
}

/** A Constant of a tensor, or of the attributes that opset 12 added. */
function constant(random: Random): ReturnType<Draw> {
  const version = opset(random, 7, 11, 12, 13, 21);
  const { data } = randomTensor(random, f32, [random.between(0, 5)]);
  const numbers = Array.from(data as Float32Array);
  const whole = numbers.map((value) => BigInt(Math.round(value * 2 ** 60)));
  const others: NonNullable<NodeCase['attributes']>[] = [
    { value_float: { float: numbers[0] ?? 0.5 } },
    { value_floats: { floats: numbers } },
    { value_int: whole[0] ?? 7 },
    { value_ints: whole },
  ];
  const value = { tensor: randomTensor(random, random.pick(all), shapeOf(random)) };
  return {
    opset: version,
    inputs: [],
    attributes: version < 12 || random.next() < 0.3 ? { value } : random.pick(others),
  };
}

function quantization(
  random: Random,
  version: number,
  dtype: 'int8' | 'uint8',
  x: (shape: number[]) => Input,
) {
  const shape = shapeOf(random, 2);
  const axis = axisOf(random, shape.length);
  const perAxis = version > 12 && random.next() < 0.6;
  const block = version > 20 && random.next() < 0.4 ? 3 : 0;
  if (block > 0) shape[(axis + shape.length) % shape.length] = random.pick([5, 6]);
  const scales =
    block > 0
      ? shape.map((size, i) => (i === (axis + shape.length) % shape.length ? 2 : size))
      : perAxis
        ? [shape.at(axis) as number]
        : [];
  const scale = randomTensor(random, f32, scales);
  (scale.data as Float32Array).forEach(
    (value, i) => ((scale.data as Float32Array)[i] = Math.abs(value) + 0.01),
  );
  const zero =
    random.next() < 0.8
      ? [randomTensor(random, dtype, scales)]
      : dtype === 'int8'
        ? [
            tensor(
              'int8',
              scales,
              Array.from({ length: count(scales) }, () => 0),
            ),
          ]
        : [];
  return {
    inputs: [x(shape), scale, ...zero],
    attributes: version > 12 ? { axis, ...(block > 0 && { block_size: block }) } : {},
  };
}
