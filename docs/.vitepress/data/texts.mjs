// How pages write figures, and the names of libraries.

const libraries = {
  ORT: 'ONNX Runtime Web',
  'ORT, constant B': 'ONNX Runtime Web',
  'onnxruntime-web': 'ONNX Runtime Web',
};
export const libraryOf = (name) => libraries[name] ?? name;

const number = (value, digits) =>
  value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Shows a rate in GOP/s. */
export const rateText = (rate) => number(rate, rate < 99.95 ? 1 : 0);

export function timeText(ms) {
  if (ms < 0.1) return `${number(ms * 1000, ms < 0.01 ? 2 : 1)} µs`;
  return `${number(ms, ms < 10 ? 2 : ms < 100 ? 1 : 0)} ms`;
}

export const ratioText = (ratio) => `${number(ratio, ratio < 9.995 ? 2 : 1)}×`;

export const sizeText = (bytes) =>
  bytes < 1e6 ? `${number(bytes / 1e3, 0)} kB` : `${number(bytes / 1e6, 1)} MB`;

export const versionsText = (versions = {}) =>
  Object.entries(versions)
    .map(([name, version]) => `${libraryOf(name)} ${version}`)
    .join(', ');
