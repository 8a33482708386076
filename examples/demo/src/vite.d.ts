/// <reference types="vite/client" />

declare module 'virtual:models' {
  /** Models as base64, by type and transposes: 'float32 0 1'. */
  const models: Record<string, string>;
  export default models;
}

declare module 'onnxruntime-web/ort-wasm-simd-threaded.wasm?url' {
  const url: string;
  export default url;
}

declare module 'virtual:digits' {
  /** Addresses of files that build/digit-files.mjs reads. */
  export const digits: string;
  export const network: string;
}

declare module 'virtual:llm' {
  /** Address of a file that build/llm-file.mjs reads. */
  const url: string;
  export default url;
}

declare module 'virtual:sample' {
  /** Address of a small .onnx file. */
  const url: string;
  export default url;
}
