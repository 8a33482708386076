/** Copies of loops.ts. */
declare module '*/loops.ts?float32' {
  export const multiply: typeof import('./loops.ts').multiply;
}
declare module '*/loops.ts?float64' {
  export const multiply: typeof import('./loops.ts').multiply;
}
declare module '*/loops.ts?int32' {
  export const multiply: typeof import('./loops.ts').multiply;
}
declare module '*/loops.ts?int8' {
  export const multiply: typeof import('./loops.ts').multiply;
}
