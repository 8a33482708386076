/**
 * Types of tfjs-backends.mjs: those parts of tfjs that the tests use. Its own declarations need
 * compiler options that this project lacks.
 */
export interface TfTensor {
  readonly shape: number[];
  readonly dtype: string;
  readonly dataId: object;
  dataSync(): Float32Array;
  dispose(): void;
}
export interface TfVariable extends TfTensor {
  assign(value: TfTensor): void;
}
export interface TfBackend {
  numDataIds(): number;
  disposeData: (dataId: object, force?: boolean) => boolean;
  /** Only wasm. */
  readonly wasm?: { tfjs: { getThreadsCount: () => number } };
}
export interface TfKernel {
  kernelName: string;
  backendName: string;
  kernelFunc: (args: {
    inputs: Record<string, { dtype: string; shape: number[] }>;
    backend: object;
    attrs?: object;
  }) => unknown;
}
export interface Tf {
  getKernel: (kernelName: string, backendName: string) => TfKernel;
  registerKernel: (config: TfKernel) => void;
  unregisterKernel: (kernelName: string, backendName: string) => void;
  setBackend(name: string): Promise<boolean>;
  backend(): TfBackend;
  findBackendFactory(name: string): () => TfBackend | Promise<TfBackend>;
  registerBackend(name: string, factory: () => TfBackend | Promise<TfBackend>): boolean;
  removeBackend(name: string): void;
  memory(): { numTensors: number; numDataBuffers: number };
  tidy<T>(body: () => T): T;
  tensor(data: unknown, shape?: readonly number[], dtype?: string): TfTensor;
  zeros(shape: readonly number[]): TfTensor;
  ones(shape: readonly number[]): TfTensor;
  fill(shape: readonly number[], value: number): TfTensor;
  complex(real: TfTensor, imaginary: TfTensor): TfTensor;
  reshape(x: TfTensor, shape: readonly number[]): TfTensor;
  variable(value: TfTensor): TfVariable;
  matMul(a: TfTensor, b: TfTensor, transposeA?: boolean, transposeB?: boolean): TfTensor;
  relu(x: TfTensor): TfTensor;
  add(a: TfTensor, b: TfTensor): TfTensor;
  sub(a: TfTensor, b: TfTensor): TfTensor;
  square(x: TfTensor): TfTensor;
  mean(x: TfTensor): TfTensor;
  fused: {
    matMul(options: {
      a: TfTensor;
      b: TfTensor;
      transposeA?: boolean;
      transposeB?: boolean;
      bias?: TfTensor;
      activation?: string;
      preluActivationWeights?: TfTensor;
      leakyreluAlpha?: number;
    }): TfTensor;
  };
  train: { sgd(rate: number): Optimizer; adam(rate: number): Optimizer };
}
interface Optimizer {
  minimize(loss: () => TfTensor, returnCost: true): TfTensor;
  dispose(): void;
}

export const tf: Tf;
