/** The curve of the training. Fetched when the visitor trains. */
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { TrainingPoint } from '../engine/digit.ts';

const height = 220;
const lowest = 50; // %; the first batches pass quickly below it

export interface Chart {
  add(point: TrainingPoint): void;
  clear(): void;
  redraw(): void;
}

/** A curve of the accuracy by epochs in an element, as wide as the element. */
export function makeChart(place: HTMLElement, epochs: number): Chart {
  const css = (name: string) => getComputedStyle(place).getPropertyValue(name);
  const grid = { stroke: () => css('--line'), width: 1 };
  const axis = {
    stroke: () => css('--text-2'),
    font: '12px system-ui, sans-serif',
    grid,
    ticks: { ...grid, size: 4 },
  };
  let xs: number[] = [];
  let ys: number[] = [];
  const width = () => Math.max(200, place.clientWidth);
  const plot = new UPlot(
    {
      width: width(),
      height,
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false, range: [0, epochs] }, y: { range: [lowest, 100] } },
      axes: [
        {
          ...axis,
          size: 26,
          splits: () => [0, 0.25, 0.5, 0.75, 1].map((part) => part * epochs),
          label: 'epochs',
          labelSize: 18,
          labelFont: axis.font,
          labelGap: 0,
        },
        {
          ...axis,
          size: 48,
          splits: () => [50, 60, 70, 80, 90, 100],
          values: (_: UPlot, values: number[]) => values.map((value) => `${value}%`),
        },
      ],
      series: [{}, { stroke: () => css('--accent'), width: 2, points: { show: false } }],
    },
    [[], []],
    place,
  );
  let isScheduled = false;
  const show = () => {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      plot.setData([xs, ys]);
    });
  };
  new ResizeObserver(() => plot.setSize({ width: width(), height })).observe(place);
  return {
    add({ epochs: x, accuracy }) {
      xs.push(x);
      ys.push(100 * accuracy);
      show();
    },
    clear() {
      [xs, ys] = [[], []];
      show();
    },
    redraw: () => plot.redraw(),
  };
}
