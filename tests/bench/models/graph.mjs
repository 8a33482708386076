// Collects the nodes and the tensors of a model. All weights follow from a seed.
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { maker } from '../../peers/onnx-graphs.mjs';

const arrays = {
  float32: Float32Array,
  int64: BigInt64Array,
  int32: Int32Array,
  int8: Int8Array,
  uint8: Uint8Array,
};

/**
 * Functions that add to a model. Each returns the name of the value that it adds.
 *
 * @param seed the seed of the weights
 */
export function graphMaker(seed) {
  const { list: initializers, floats } = maker(seed);
  const nodes = [];

  /**
   * Adds a node with one or more outputs. Its type may begin with the domain com.microsoft. Returns
   * the name of the first output.
   */
  const node = (type, inputs, outputs, attributes = {}) => {
    const names = [outputs].flat();
    const [, domain, op] = /^(?:(.*)\.)?(\w+)$/.exec(type);
    nodes.push({ op, domain, name: `${op} ${names[0]}`, inputs, outputs: names, attributes });
    return names[0];
  };
  const tensor = (name, dtype, shape, data) => {
    initializers.push({ name, dtype, shape, data });
    return name;
  };
  return {
    node,
    floats,
    tensor,

    /** Numbers from 1 - most to 1 + most, as the weights of a normalization. */
    nearOne(name, shape, most = 0.1) {
      floats(name, shape, most);
      const last = initializers.at(-1);
      last.data = last.data.map((value) => 1 + value);
      return name;
    },

    /** Adds a tensor of one element, without axes. */
    scalar: (name, dtype, value) => tensor(name, dtype, [], arrays[dtype].of(value)),

    /** Takes the tensor back that was added last. */
    takeBack: () => initializers.pop(),

    /** Adds a node Constant, as exporters write small tensors. `values` is a list or one value. */
    constant(name, dtype, values) {
      const list = [values].flat();
      const data = arrays[dtype].from(list, dtype === 'int64' ? BigInt : Number);
      const shape = Array.isArray(values) ? [list.length] : [];
      return node('Constant', [], name, { value: { tensor: { dtype, shape, data } } });
    },

    /** The bytes of the model. */
    encode: (model) => encodeGraph({ nodes, initializers, ...model }),

    /** The bytes of the model, and of a file with its tensors: { bytes, weights }. */
    encodeWithFile(model, location) {
      const parts = [];
      let offset = 0;
      const external = initializers.map((tensor) => {
        const { buffer, byteOffset, byteLength: length } = tensor.data;
        parts.push(new Uint8Array(buffer, byteOffset, length));
        offset += length;
        return { ...tensor, external: { location, offset: offset - length, length } };
      });
      const bytes = encodeGraph({ nodes, ...model, initializers: external });
      return { bytes, weights: Buffer.concat(parts) };
    },
  };
}
