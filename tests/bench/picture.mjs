// Draws the sweep by ECharts, as SVG: GOP/s over size, one line per library, the limit dashed.
import * as echarts from 'echarts';
import { threadsText } from './print.mjs';

const [width, height] = [980, 500];
const [top, bottom] = [134, 62];
const panels = [
  { type: 'float32', title: 'float32', left: 48, width: 350 },
  { type: 'uint8 x int8', title: 'uint8 × int8, weights packed', left: 606, width: 232 },
];

/** Colours of a page, and of the contestants on it. */
const themes = {
  light: {
    page: '#ffffff',
    strong: '#1f2328',
    weak: '#59636e',
    line: '#d1d9e0',
    grid: '#eaeef2',
    wgemm: '#0f766e',
    simd128: '#3aa99d',
    ort: '#bc4c00',
    tfjs: '#0969da',
    numpy: '#8250df',
  },
  dark: {
    page: '#14181a',
    strong: '#e6edf3',
    weak: '#9aa5af',
    line: '#3b444b',
    grid: '#252c30',
    wgemm: '#2dd4bf',
    simd128: '#1f9488',
    ort: '#f0883e',
    tfjs: '#58a6ff',
    numpy: '#bc8cff',
  },
};
// Without quotes, which would end the SVG's attribute.
const font = '-apple-system, Segoe UI, Noto Sans, Helvetica, Arial, sans-serif';

/** Contestants by their names in the results; their colours by their names in a theme. */
const lines = {
  wgemm: { label: 'wgemm', color: 'wgemm', width: 3 },
  'wgemm, B packed': { label: 'wgemm', color: 'wgemm', width: 3 },
  'wgemm, simd128': { label: 'wgemm without\nrelaxed SIMD', color: 'simd128', width: 2 },
  'ORT, constant B': { label: 'ONNX Runtime Web', color: 'ort', width: 2 },
  tfjs: { label: 'tfjs', color: 'tfjs', width: 2 },
  'numpy-ts': { label: 'numpy-ts', color: 'numpy', width: 2 },
};

const limits = {
  'float32, relaxed': { label: 'limit', color: 'weak' },
  'float32, simd128': { label: 'limit without\nrelaxed SIMD', color: 'simd128' },
  'uint8 x int8, simd128': { label: 'limit', color: 'weak' },
  'uint8 x int8, relaxed': { label: 'limit', color: 'weak' },
};

/**
 * @param results of a run with the sweep
 * @param options.theme 'light' or 'dark'
 * @returns the SVG's text
 */
export function draw(
  { date, processor, engine, threads, withoutThreads = [], versions, cases },
  { theme = 'light' } = {},
) {
  const ink = themes[theme];
  const inColor = (each) => ({ ...each, color: ink[each.color] });
  const rate = ({ operations, best }) => operations / best / 1e6;
  const measured = cases.find(({ name }) => name === 'sweep limit')?.contestants ?? [];
  const exceptions = withoutThreads.length > 0 ? `, but ${withoutThreads.join(' and ')} one` : '';
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width, height });
  const parts = panels.map((panel, i) => {
    const shown = cases.filter(({ name }) => name.startsWith(`sweep ${panel.type} `));
    const pointsOf = (name, list) =>
      list
        .map(({ m, n, k, contestants }) => [
          Math.cbrt(m * n * k),
          rate(contestants.find((each) => each.name === name)),
        ])
        .sort(([a], [b]) => a - b);
    const isCube = ({ m, n, k }) => m === n && n === k;
    const names = Object.keys(lines).filter((name) =>
      shown[0].contestants.some((each) => each.name === name),
    );
    const curves = names.map((name) => ({
      ...inColor(lines[name]),
      points: pointsOf(name, shown.filter(isCube)),
      odd: pointsOf(
        name,
        shown.filter((each) => !isCube(each)),
      ),
    }));
    const bounds = measured
      .filter(({ name }) => name.startsWith(`${panel.type}, `))
      .map((each) => ({ ...inColor(limits[each.name]), rate: rate(each) }));
    return { ...panel, i, curves, bounds };
  });
  const highest = Math.max(
    ...parts.flatMap(({ bounds, curves }) => [
      ...bounds.map((each) => each.rate),
      ...curves.flatMap(({ points }) => points.map(([, y]) => y)),
    ]),
  );
  const y = { max: Math.ceil(highest / 20) * 20, height: height - top - bottom };
  chart.setOption({
    animation: false,
    backgroundColor: ink.page,
    textStyle: { fontFamily: font },
    title: [
      {
        text: 'Speed of a product of two square matrices, in GOP/s',
        subtext: [
          `${date.slice(0, 10)}, ${processor}, ${engine.name} ${engine.version}, ` +
            `${threadsText(threads)}${exceptions}; best of many`,
          `ONNX Runtime Web ${versions['onnxruntime-web']} with constant weights, tfjs ` +
            `${versions.tfjs}, numpy-ts ${versions['numpy-ts']}`,
          (measured.length > 0
            ? 'dashed: multiply and add in registers alone, on one core; '
            : '') + 'hollow: odd sizes, such as 127 × 129 × 131',
        ].join('\n'),
        left: 20,
        top: 14,
        itemGap: 6,
        textStyle: { color: ink.strong, fontSize: 17, fontWeight: 600 },
        subtextStyle: { color: ink.weak, fontSize: 11.5, lineHeight: 16 },
      },
      ...parts.map((part) => ({
        text: part.title,
        left: part.left - 4,
        top: top - 30,
        textStyle: { color: ink.strong, fontSize: 13, fontWeight: 600 },
      })),
    ],
    grid: parts.map((part) => ({ left: part.left, top, width: part.width, height: y.height })),
    xAxis: parts.map(({ i }) => ({
      gridIndex: i,
      type: 'log',
      logBase: 2,
      min: 16,
      max: 2048,
      name: 'rows, columns and depth of the product',
      nameLocation: 'middle',
      nameGap: 30,
      nameTextStyle: { color: ink.weak, fontSize: 12 },
      axisLabel: {
        color: ink.weak,
        fontSize: 12,
        formatter: (size) => (Number.isInteger(Math.log2(size) / 2) ? String(size) : ''),
      },
      axisLine: { lineStyle: { color: ink.line } },
      axisTick: { lineStyle: { color: ink.line } },
      splitLine: { show: false },
    })),
    yAxis: parts.map(({ i }) => ({
      gridIndex: i,
      min: 0,
      max: y.max,
      interval: 20,
      axisLabel: { color: ink.weak, fontSize: 12 },
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: ink.grid } },
    })),
    series: parts.flatMap((part) => seriesOf(part, ink)),
    graphic: parts.flatMap((part) => labelsOf(part, y)),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return `${svg}\n`;
}

function seriesOf({ i, curves, bounds }, ink) {
  const common = { type: 'line', xAxisIndex: i, yAxisIndex: i, silent: true };
  return [
    ...bounds.map((each) => ({
      ...common,
      data: [
        [16, each.rate],
        [2048, each.rate],
      ],
      symbol: 'none',
      lineStyle: { color: each.color, width: 1.5, type: [6, 4] },
    })),
    ...curves.toReversed().map(({ points, color, width }) => ({
      ...common,
      data: points,
      symbol: 'circle',
      symbolSize: width + 2,
      lineStyle: { color, width },
      itemStyle: { color },
    })),
    ...curves.map(({ odd, color, width }) => ({
      ...common,
      type: 'scatter',
      z: 3, // over the lines
      data: odd,
      symbolSize: width + 3,
      itemStyle: { color: ink.page, borderColor: color, borderWidth: 1.5, opacity: 1 },
    })),
  ];
}

const lineHeight = 14;

/** Each line's name at its right end, moved if lines end close to each other. */
function labelsOf({ left, width, curves, bounds }, y) {
  const at = (rate) => top + y.height * (1 - rate / y.max);
  const labels = [
    ...curves.map(({ label, color, points }) => ({
      text: label,
      color,
      bold: label === 'wgemm',
      wanted: at(points.at(-1)[1]),
    })),
    ...bounds.map(({ label, color, rate }) => ({ text: label, color, wanted: at(rate) })),
  ].map((label) => ({ ...label, size: lineHeight * label.text.split('\n').length }));
  spread(labels);
  return labels.map(({ text, color, bold, y: middle }) => ({
    type: 'text',
    x: left + width + 8,
    y: middle,
    style: {
      text,
      fill: color,
      font: `${bold ? '600 ' : ''}12px ${font}`,
      lineHeight,
      verticalAlign: 'middle',
    },
  }));
}

/** Labels that would overlap are placed one below the other, around their common middle. */
function spread(labels) {
  labels.sort((a, b) => a.wanted - b.wanted);
  const groups = [];
  for (const label of labels) {
    groups.push({ members: [label], middle: label.wanted, size: label.size });
    for (
      let last = groups.at(-1), above = groups.at(-2);
      above && above.middle + above.size / 2 > last.middle - last.size / 2;
    ) {
      const members = [...above.members, ...last.members];
      const size = above.size + last.size;
      const middle = members.reduce((sum, member) => sum + member.wanted, 0) / members.length;
      groups.splice(-2, 2, { members, middle, size });
      [last, above] = [groups.at(-1), groups.at(-2)];
    }
  }
  for (const { members, middle, size } of groups) {
    let edge = middle - size / 2;
    for (const member of members) {
      member.y = edge + member.size / 2;
      edge += member.size;
    }
  }
}
