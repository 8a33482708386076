// Shows on a terminal how good a network's answers are.
import { drawDigits } from './draw.mjs';
import { pixels, side } from './images.mjs';

/** The share of right answers, in percent. */
export function accuracy(answers, { labels }) {
  const right = answers.filter((answer, i) => answer === labels[i]).length;
  return `${((100 * right) / labels.length).toFixed(2)}%`;
}

/** Digits that it recognized, and two that it mistook. */
export function showSome({ images, labels }, answers) {
  const rows = [...labels.keys()];
  const known = rows.filter((row) => answers[row] === labels[row]);
  const mistaken = rows.filter((row) => answers[row] !== labels[row]);
  const pictures = [...known.slice(0, 4), ...mistaken.slice(0, 2)].map((row) => ({
    image: images.subarray(row * pixels, (row + 1) * pixels),
    side,
    caption:
      answers[row] === labels[row]
        ? `took for ${answers[row]}: right`
        : `took for ${answers[row]}: is ${labels[row]}`,
  }));
  console.log(drawDigits(pictures, process.stdout.columns ?? 80));
}
