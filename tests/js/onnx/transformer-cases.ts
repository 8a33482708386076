/**
 * Operators of transformers: cases from their definitions. If a query sees one key, the result is
 * its value, exactly.
 */
import type { Input } from './onnx-nodes.js';
import { tensor } from './onnx-nodes.js';
import type { Case } from './onnx-cases.js';

const f = (shape: readonly number[], values: readonly number[]): Input =>
  tensor('float32', shape, values);
const i = (shape: readonly number[], values: readonly number[]): Input =>
  tensor('int32', shape, values);
const l = (shape: readonly number[], values: readonly number[]): Input =>
  tensor('int64', shape, values);
const ms = 'com.microsoft';
const float = (value: number) => ({ float: value });
const low = -Infinity;
const least = -3.4028234663852886e38; // of float32

export const transformerCases: readonly Case[] = [
  [
    'Attention of one key',
    {
      op: 'Attention',
      opset: 23,
      inputs: [f([1, 1, 2, 2], [1, 2, 3, 4]), f([1, 1, 1, 2], [5, 6]), f([1, 1, 1, 3], [7, 8, 9])],
    },
    ['float32', [1, 1, 2, 3], [7, 8, 9, 7, 8, 9]],
  ],
  [
    'Attention whose mask hides keys, and all keys',
    {
      op: 'Attention',
      opset: 23,
      inputs: [
        f([1, 1, 2, 1], [1, 1]),
        f([1, 1, 2, 1], [1, 2]),
        f([1, 1, 2, 1], [7, 8]),
        f([2, 2], [low, 0, low, low]),
      ],
    },
    ['float32', [1, 1, 2, 1], [8, 0]],
  ],
  [
    'Attention whose mask has the least number for all keys',
    {
      op: 'Attention',
      opset: 23,
      inputs: [
        f([1, 1, 2, 1], [1, 1]),
        f([1, 1, 2, 1], [1, 2]),
        f([1, 1, 2, 1], [7, 8]),
        f([2, 2], [least, least, least, low]),
      ],
    },
    ['float32', [1, 1, 2, 1], [7.5, 7]],
  ],
  [
    'Attention whose mask has fewer keys, with past and present',
    {
      op: 'Attention',
      opset: 23,
      inputs: [
        f([1, 1, 2], [1, 1]),
        f([1, 1, 1], [1]),
        f([1, 1, 1], [5]),
        tensor('bool', [1, 1], [1]),
        f([1, 1, 1, 1], [3]),
        f([1, 1, 1, 1], [4]),
      ],
      attributes: { q_num_heads: 2, kv_num_heads: 1, is_causal: 1 },
      outputs: 3,
    },
    ['float32', [1, 1, 2], [4, 4]],
    ['float32', [1, 1, 2, 1], [3, 1]],
    ['float32', [1, 1, 2, 1], [4, 5]],
  ],
  [
    'Attention with lengths of its batches, and its powers',
    {
      op: 'Attention',
      opset: 24,
      inputs: [
        f([2, 1, 1, 1], [1, 1]),
        f([2, 1, 2, 1], [1, 1, 1, 1]),
        f([2, 1, 2, 1], [1, 2, 3, 5]),
        null,
        null,
        null,
        tensor('int64', [2], [1, 2]),
      ],
      attributes: { qk_matmul_output_mode: 3 },
      outputs: 4,
    },
    ['float32', [2, 1, 1, 1], [1, 4]],
    ['float32', [2, 1, 2, 1], [1, 1, 1, 1]],
    ['float32', [2, 1, 2, 1], [1, 2, 3, 5]],
    ['float32', [2, 1, 1, 2], [1, 0, 0.5, 0.5]],
  ],
  [
    'RMSNormalization',
    {
      op: 'RMSNormalization',
      opset: 23,
      inputs: [f([2, 2], [1, -1, 3, 3]), f([2], [1, 2])],
      attributes: { epsilon: float(1e-12) },
    },
    ['float32', [2, 2], [1, -2, 1, 2]],
  ],
  [
    'SimplifiedLayerNormalization',
    {
      op: 'SimplifiedLayerNormalization',
      inputs: [f([1, 2], [1, -1]), f([2], [1, 2])],
      attributes: { epsilon: float(1e-12) },
    },
    ['float32', [1, 2], [1, -2]],
  ],
  [
    'RotaryEmbedding of a part of the head',
    {
      op: 'RotaryEmbedding',
      opset: 23,
      inputs: [
        f([1, 1, 1, 3], [1, 2, 3]),
        f([2, 1], [1, 0]),
        f([2, 1], [0, 1]),
        tensor('int64', [1, 1], [1]),
      ],
      attributes: { rotary_embedding_dim: 2 },
    },
    ['float32', [1, 1, 1, 3], [-2, 1, 3]],
  ],
  [
    'RotaryEmbedding of com.microsoft from a position on',
    {
      op: 'RotaryEmbedding',
      domain: ms,
      inputs: [
        f([1, 2, 4], [1, 2, 3, 4, 5, 6, 7, 8]),
        tensor('int64', [1], [0]),
        f([2, 1], [1, 0]),
        f([2, 1], [0, 1]),
      ],
    },
    ['float32', [1, 2, 4], [1, 2, 3, 4, -6, 5, -8, 7]],
  ],
  [
    'SkipLayerNormalization adds a bias',
    {
      op: 'SkipLayerNormalization',
      domain: ms,
      inputs: [
        f([1, 1, 2], [2, 0]),
        f([1, 1, 2], [1, 0]),
        f([2], [1, 1]),
        f([2], [0, 0]),
        f([2], [0, 1]),
      ],
    },
    ['float32', [1, 1, 2], [1, -1]],
  ],
  [
    'SkipSimplifiedLayerNormalization',
    {
      op: 'SkipSimplifiedLayerNormalization',
      domain: ms,
      inputs: [f([1, 1, 2], [2, 0]), f([1, 1, 2], [1, 3]), f([2], [1, 1])],
    },
    ['float32', [1, 1, 2], [1, 1]],
  ],
  [
    'EmbedLayerNormalization and its mask',
    {
      op: 'EmbedLayerNormalization',
      domain: ms,
      inputs: [
        i([1, 2], [1, 0]),
        i([1, 2], [0, 0]),
        f([2, 2], [3, 0, 5, 0]),
        f([2, 2], [0, 1, 0, 1]),
        f([1, 2], [1, 2]),
        f([2], [1, 1]),
        f([2], [0, 0]),
        i([1, 2], [1, 0]),
      ],
      outputs: 2,
    },
    ['float32', [1, 2, 2], [1, -1, 1, -1]],
    ['int32', [1], [1]],
  ],
  [
    'MultiHeadAttention with a mask of keys',
    {
      op: 'MultiHeadAttention',
      domain: ms,
      inputs: [
        f([1, 1, 2], [1, 1]),
        f([1, 2, 2], [1, 2, 3, 4]),
        f([1, 2, 2], [5, 6, 7, 8]),
        null,
        i([1, 2], [0, 1]),
      ],
      attributes: { num_heads: 2 },
    },
    ['float32', [1, 1, 2], [7, 8]],
  ],
  [
    'GroupQueryAttention with room for new keys',
    {
      op: 'GroupQueryAttention',
      domain: ms,
      inputs: [
        f([2, 1, 2], [1, 1, 1, 1]),
        f([2, 1, 1], [0, 0]),
        f([2, 1, 1], [5, 6]),
        f([2, 1, 2, 1], [0, 0, 0, 0]),
        f([2, 1, 2, 1], [7, 9, 8, 4]),
        i([2], [1, 2]),
        i([], [3]),
        null,
        null,
      ],
      attributes: { num_heads: 2, kv_num_heads: 1 },
      outputs: 3,
    },
    ['float32', [2, 1, 2], [6, 6, 6, 6]],
    ['float32', [2, 1, 3, 1], [0, 0, 0, 0, 0, 0]],
    ['float32', [2, 1, 3, 1], [7, 5, 0, 8, 4, 6]],
  ],
  [
    'GroupQueryAttention of a prompt: the first position counts',
    {
      op: 'GroupQueryAttention',
      domain: ms,
      inputs: [
        f([1, 2, 2], [0, 0, 0, 0]),
        f([1, 2, 2], [1, 0, 1, 0]),
        f([1, 2, 2], [5, 5, 7, 7]),
        null,
        null,
        i([1], [1]),
        i([], [2]),
        f([4, 1], [0, 2, 3, 4]),
        f([4, 1], [0, 0, 0, 0]),
        l([1, 2], [1, 3]),
      ],
      attributes: { num_heads: 1, kv_num_heads: 1, do_rotary: 1 },
      outputs: 3,
    },
    ['float32', [1, 2, 2], [5, 5, 6, 6]],
    ['float32', [1, 1, 2, 2], [2, 0, 3, 0]],
    ['float32', [1, 1, 2, 2], [5, 5, 7, 7]],
  ],
  [
    'Attention of com.microsoft, causal',
    {
      op: 'Attention',
      domain: ms,
      inputs: [f([1, 2, 1], [1, 2]), f([1, 3], [0, 0, 1]), f([3], [0, 0, 1])],
      attributes: { num_heads: 1, unidirectional: 1 },
    },
    ['float32', [1, 2, 1], [2, 2.5]],
  ],
  [
    'BiasGelu at its ends',
    { op: 'BiasGelu', domain: ms, inputs: [f([2, 2], [50, -50, -300, NaN]), f([2], [50, 50])] },
    ['float32', [2, 2], [100, 0, 0, NaN]],
  ],
];
