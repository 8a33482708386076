// The cases of a run: each is a product, with times of wgemm and of its peers.
import { libraryOf, ratioText, rateText, timeText } from './texts.mjs';

/** Forms of wgemm that are compared with a peer: the same types and threads, the default build. */
export const usual = ['wgemm', 'wgemm, B packed'];

/** GOP/s. */
export const rateOf = ({ operations, best }) => operations / best / 1e6;

export const fastest = (contestants) =>
  contestants.reduce((one, each) => (one && rateOf(one) >= rateOf(each) ? one : each), undefined);

export const caseNamed = ({ cases }, wanted) => cases.find(({ name }) => name === wanted);

/** The fastest of the usual forms of wgemm. */
export const ownOf = ({ contestants }) =>
  fastest(contestants.filter(({ name }) => usual.includes(name)));

/** The faster form of each peer, the fastest peer first. */
export function peersOf({ contestants }) {
  const peers = contestants.filter(({ kind }) => kind === 'peer');
  return [...new Set(peers.map(({ name }) => libraryOf(name)))]
    .map((library) => fastest(peers.filter(({ name }) => libraryOf(name) === library)))
    .sort((a, b) => rateOf(b) - rateOf(a));
}

/** 'matmul float32 12 x 128x64x128, transposeB' -> types, shape and the rest. */
export function partsOf({ name, m, n, k }) {
  const shape = `${m}x${n}x${k}`;
  const [before, after] = name.split(shape);
  const batch = /(\d+) x $/.exec(before)?.[1];
  const types = before.replace(/(\d+ x )?$/, '').trim();
  return {
    types: types.replace(' x ', ' × '),
    shape: batch ? `${batch} × (${m} × ${n} × ${k})` : `${m} × ${n} × ${k}`,
    detail: after.replace(/^(,? )+/, '').replace(/^to /, 'y '),
  };
}

/** The text of a bar. It does not break in the shape. */
export const labelOf = ({ types, shape, detail }) =>
  [types, shape.replaceAll(' ', '\u00a0'), detail].filter(Boolean).join(', ');

function formText(name) {
  const form = name.replace(/^wgemm(, )?/, '') || 'wgemm';
  return form === 'wgemm' ? 'B unpacked' : form.replace('one by one', 'a gemm per matrix');
}

/** Rows of one case: each form of wgemm, and the fastest peer. */
function caseOf(problem) {
  const of = (kind) => problem.contestants.filter((each) => each.kind === kind);
  const peer = fastest(of('peer'));
  const forms = of('own').map((each) => ({
    form: formText(each.name),
    rate: rateText(rateOf(each)),
    time: timeText(each.best),
    // A ratio of two threads to one would say nothing about the libraries.
    ratio: peer && !/threads/.test(each.name) ? ratioText(rateOf(each) / rateOf(peer)) : '',
  }));
  const own = ownOf(problem);
  return {
    ...partsOf(problem),
    forms,
    peer: peer && {
      library: libraryOf(peer.name),
      detail: /constant B/.test(peer.name) ? 'constant B' : '',
      rate: rateText(rateOf(peer)),
    },
    best: own && peer && rateOf(own) / rateOf(peer),
  };
}

export const casesOf = (results) =>
  results.cases
    .filter(({ name }) => !/^(sweep|cliff) /.test(name))
    .filter(({ m }) => m !== undefined)
    .map(caseOf);

/**
 * How many times as fast as the fastest peer, over all cases of a run: { cases, lowest, median,
 * highest }.
 */
export function rangeOf(results) {
  const ratios = casesOf(results)
    .flatMap(({ best }) => best ?? [])
    .sort((a, b) => a - b);
  return {
    cases: ratios.length,
    lowest: ratios[0],
    median: ratios[ratios.length >> 1],
    highest: ratios.at(-1),
  };
}
