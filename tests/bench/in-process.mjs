// Runs the bench in this process of Node or Bun, with the settings of the command line. It writes
// each result as a line to file descriptor 3.
import { writeSync } from 'node:fs';
import { work } from './work.mjs';

await work(JSON.parse(process.argv[2]), (kind, result) =>
  writeSync(3, `${JSON.stringify({ kind, result })}\n`),
);
process.exit(); // ONNX Runtime Web's threads go on
