// A fair race against plain JavaScript, as one would write it without a library.

/**
 * y = activation(x * weights + bias) by three loops, in the order that walks every array forwards.
 */
export function multiplyInJavaScript(
  { data: x, shape: [m, k] },
  { weights: { data: w }, bias: { data: bias } },
  { data: y },
  activation,
) {
  const n = bias.length;
  for (let i = 0; i < m; ++i) {
    const row = y.subarray(i * n, (i + 1) * n);
    row.set(bias);
    for (let p = 0; p < k; ++p) {
      const factor = x[i * k + p];
      const start = p * n;
      for (let j = 0; j < n; ++j) row[j] += factor * w[start + j];
    }
    if (activation === 'relu') for (let j = 0; j < n; ++j) if (row[j] < 0) row[j] = 0;
  }
}

/**
 * Runs each function `rounds` times, in turns, so that a busy moment of the machine affects all
 * alike. Returns seconds: best and median.
 */
export function race(runners, rounds) {
  // The engine compiles what runs often a second time, and better.
  for (const run of runners) for (let i = 0; i < 3; ++i) run();
  const times = runners.map(() => []);
  for (let round = 0; round < rounds; ++round) {
    runners.forEach((run, i) => {
      const start = performance.now();
      run();
      times[i].push((performance.now() - start) / 1000);
    });
  }
  return times.map((list) => {
    list.sort((a, b) => a - b);
    return { best: list[0], median: list[list.length >> 1] };
  });
}

/** The largest difference of two arrays, relative to the largest magnitude in them. */
export function difference(a, b) {
  let largest = 0;
  let magnitude = 0;
  a.forEach((value, i) => {
    largest = Math.max(largest, Math.abs(value - b[i]));
    magnitude = Math.max(magnitude, Math.abs(value), Math.abs(b[i]));
  });
  return largest / magnitude;
}
