/** Makes of strokes an image as the data set has them. */
import { pixels, side } from '../../../digits/images.mjs';

/** A place on the pad, which is 28 x 28. */
export interface Point {
  x: number;
  y: number;
}
export type Stroke = Point[];

/** As thick as the strokes of the data set are, in pixels of the image. */
export const penWidth = 2.4;

const box = 20; // the data set fits each digit into a box of 20 x 20 pixels
const fine = 4; // a grey level is the average of 4 x 4 samples
const smallest = 5; // a dot does not grow to fill the box

/**
 * The image of 28 x 28 pixels, from 0 (paper) to 1 (ink), that a network sees: the strokes are
 * fitted into the box with their proportions, and the centre of mass is moved to the centre
 * (LeCun et al., 1998). A small drawing becomes larger, but its strokes keep their width.
 */
export function imageOf(strokes: Stroke[]): Float32Array | undefined {
  const points = strokes.flat();
  if (points.length === 0) return undefined;
  const xs = points.map(({ x }) => x);
  const ys = points.map(({ y }) => y);
  const [left, right, top, bottom] = [least(xs), most(xs), least(ys), most(ys)];
  const scale = (box - penWidth) / Math.max(right - left, bottom - top, smallest);
  const toBox = ({ x, y }: Point): Point => ({
    x: box / 2 + scale * (x - (left + right) / 2),
    y: box / 2 + scale * (y - (top + bottom) / 2),
  });
  return centred(averaged(drawn(strokes.map((stroke) => stroke.map(toBox)))));
}

const least = (values: number[]) => values.reduce((a, b) => Math.min(a, b));
const most = (values: number[]) => values.reduce((a, b) => Math.max(a, b));

/** How much of each sample of the box is inked: a line with round ends between any two points. */
function drawn(strokes: Stroke[]): Float32Array {
  const size = box * fine;
  const samples = new Float32Array(size * size);
  const radius = (penWidth / 2) * fine;
  const outer = (radius + 0.5) ** 2;
  const clamp = (value: number) => Math.min(Math.max(0, Math.floor(value)), size - 1);
  for (const stroke of strokes)
    stroke.forEach((point, i) => {
      const { x: ax, y: ay } = scaled(stroke[Math.max(0, i - 1)]!);
      const { x: bx, y: by } = scaled(point);
      const [dx, dy] = [bx - ax, by - ay];
      const length = dx * dx + dy * dy;
      const perLength = length && 1 / length;
      const firstX = clamp(Math.min(ax, bx) - radius - 1);
      const lastX = clamp(Math.max(ax, bx) + radius + 1);
      const lastY = clamp(Math.max(ay, by) + radius + 1);
      for (let y = clamp(Math.min(ay, by) - radius - 1); y <= lastY; ++y)
        for (let x = firstX; x <= lastX; ++x) {
          const at = y * size + x;
          if (samples[at] === 1) continue;
          const px = x + 0.5 - ax;
          const py = y + 0.5 - ay;
          const along = Math.min(Math.max(0, (px * dx + py * dy) * perLength), 1);
          const ex = px - along * dx;
          const ey = py - along * dy;
          const distance2 = ex * ex + ey * ey;
          if (distance2 >= outer) continue;
          const ink = Math.min(radius + 0.5 - Math.sqrt(distance2), 1);
          if (ink > samples[at]!) samples[at] = ink;
        }
    });
  return samples;
}

const scaled = ({ x, y }: Point): Point => ({ x: fine * x, y: fine * y });

/** The box in pixels: each is the average of its samples. */
function averaged(samples: Float32Array): Float32Array {
  const averages = new Float32Array(box * box);
  const size = box * fine;
  samples.forEach((ink, i) => {
    const y = Math.floor(i / size / fine);
    const x = Math.floor((i % size) / fine);
    averages[y * box + x]! += ink / (fine * fine);
  });
  return averages;
}

/** The box in an image, so that the centre of mass is as near to the centre as whole pixels can. */
function centred(inBox: Float32Array): Float32Array {
  let [mass, sumX, sumY] = [0, 0, 0];
  inBox.forEach((ink, i) => {
    mass += ink;
    sumX += ink * ((i % box) + 0.5);
    sumY += ink * (Math.floor(i / box) + 0.5);
  });
  const start = (centre: number) =>
    Math.min(Math.max(0, Math.round(side / 2 - centre)), side - box);
  const [startX, startY] = [start(sumX / mass), start(sumY / mass)];
  const image = new Float32Array(pixels);
  for (let y = 0; y < box; ++y)
    image.set(inBox.subarray(y * box, (y + 1) * box), (startY + y) * side + startX);
  return image;
}
