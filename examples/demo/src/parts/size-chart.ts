/** The curve: speed by size, with uPlot. Loaded when the visitor comes near it. */
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { lineOf } from './size-lines.ts';
import { largest } from './size-sizes.ts';

export interface ChartPoint {
  x: number;
  /** GOP/s by the name of the contestant. */
  speeds: Record<string, number>;
}

export interface Chart {
  /** @param now the size that is marked */
  show(points: ChartPoint[], names: string[], now: number, isLog: boolean): void;
}

const octaves = Math.log2(largest);

/** @param onPoint is called with the size under the pointer; undefined when it leaves */
export function makeChart(box: HTMLElement, onPoint: (x: number | undefined) => void): Chart {
  let plot: uPlot | undefined;
  let made = ''; // what the plot was made for
  let marked = 1;
  let shown: ChartPoint[] = [];

  const colours = new Map<string, string>(); // to ask the browser is slow
  const colour = (name: string): string => {
    const found = colours.get(name) ?? getComputedStyle(box).getPropertyValue(name).trim();
    colours.set(name, found);
    return found;
  };
  const size = () => ({ width: box.clientWidth, height: box.clientHeight });

  /** A line at the chosen size, and a ring around its point. */
  const mark = (u: uPlot) => {
    const { ctx, bbox } = u;
    const at = Math.log2(marked);
    const x = u.valToPos(at, 'x', true);
    ctx.save();
    ctx.strokeStyle = colour('--text');
    ctx.globalAlpha = 0.45;
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.globalAlpha = 1;
    const point = shown.find(({ x }) => x === marked);
    for (const [name, speed] of Object.entries(point?.speeds ?? {})) {
      ctx.beginPath();
      ctx.arc(x, u.valToPos(speed, 'y', true), 4.5 * devicePixelRatio, 0, 2 * Math.PI);
      ctx.fillStyle = colour('--page');
      ctx.fill();
      ctx.lineWidth = 2.25 * devicePixelRatio;
      ctx.strokeStyle = colour(lineOf(name).colour);
      ctx.stroke();
    }
    ctx.restore();
  };

  const make = (names: string[], isLog: boolean): uPlot => {
    const font = `12px ${getComputedStyle(box).fontFamily}`;
    const axis: uPlot.Axis = {
      font,
      stroke: () => colour('--text-2'),
      grid: { stroke: () => colour('--line'), width: 1 },
      ticks: { show: false },
    };
    const options: uPlot.Options = {
      ...size(),
      padding: [8, 14, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: false, y: false },
        points: { size: 7 },
      },
      scales: {
        x: { time: false, range: [-0.15, octaves + 0.15] },
        y: {
          distr: isLog ? 3 : 1,
          range: (_, least, most) =>
            isLog
              ? [
                  10 ** Math.floor(Math.log10(least || 0.01)),
                  10 ** Math.ceil(Math.log10(most || 1)),
                ]
              : [0, 1.08 * (most || 1)],
        },
      },
      axes: [
        {
          ...axis,
          size: 28,
          gap: 6,
          splits: (u) => {
            const step = u.width < 480 ? 2 : 1;
            const first = step === 2 ? octaves % 2 : 0;
            return Array.from({ length: octaves + 1 }, (_, i) => i).filter(
              (i) => i >= first && (i - first) % step === 0,
            );
          },
          values: (_, splits) => splits.map((octave) => String(2 ** octave)),
        },
        {
          ...axis,
          size: 46,
          gap: 6,
          values: (_, splits) =>
            splits.map((value) =>
              value === null || (isLog && !Number.isInteger(Math.log10(value)))
                ? ''
                : String(Number(value.toPrecision(3))),
            ),
        },
      ],
      series: [
        {},
        ...names.map((name): uPlot.Series => {
          const { colour: variable, dash, width } = lineOf(name);
          return {
            label: name,
            stroke: () => colour(variable),
            width,
            ...(dash.length > 0 ? { dash } : {}),
            spanGaps: true,
            points: { show: true, size: 4.5, width: 0, fill: () => colour(variable) },
          };
        }),
      ],
      hooks: {
        draw: [mark],
        setCursor: [
          (u) => {
            const index = u.cursor.idx;
            onPoint(typeof index === 'number' && u.cursor.left! >= 0 ? shown[index]?.x : undefined);
          },
        ],
      },
    };
    return new uPlot(options, [[], ...names.map(() => [])], box);
  };

  new ResizeObserver(() => plot?.setSize(size())).observe(box);
  document.addEventListener('theme', () => {
    colours.clear();
    plot?.redraw();
  });

  return {
    show(points, names, now, isLog) {
      const wanted = `${names.join()} ${isLog}`;
      marked = now;
      shown = [...points].sort((a, b) => a.x - b.x);
      if (wanted !== made) {
        plot?.destroy();
        plot = make(names, isLog);
        made = wanted;
      }
      plot!.setData([
        shown.map(({ x }) => Math.log2(x)),
        ...names.map((name) => shown.map(({ speeds }) => speeds[name] ?? null)),
      ]);
    },
  };
}
