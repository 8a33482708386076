/** The same bits everywhere: hashes of a product in strict and in fast mode. */
import type { Bits, BothBits } from '../engine/bits.ts';
import type { Engine } from '../page/connect.ts';
import { find, make } from '../page/dom.ts';
import { keepFocus } from '../page/focus.ts';
import { threadsOf, whole } from '../page/format.ts';
import { showProblem } from '../page/job.ts';

export async function start(section: HTMLElement, engine: Engine): Promise<void> {
  const again = find<HTMLButtonElement>(section, '#bits-again');
  const said = find(section, '#bits-said');
  // SHA-256 of the strict result, which the code to paste promises. Three loops that round each
  // product and each sum have it, too.
  const [expected] = /\b[\da-f]{64}\b/.exec(find(section, '.code').textContent)!;
  showHash(section, '#bits-expected', expected);
  const compute = async () => {
    const giveFocusBack = keepFocus(section);
    again.disabled = true;
    said.textContent = 'Computing ...';
    try {
      show(section, await engine.compareBits(), expected);
      find(section, '.notice').hidden = true;
    } catch (error) {
      showProblem(section, error);
    }
    said.textContent = '';
    again.disabled = false;
    giveFocusBack();
  };
  again.addEventListener('click', () => void compute());
  await compute();
}

function show(
  section: HTMLElement,
  { strict, fast, different, count }: BothBits,
  expected: string,
): void {
  const isHashed = strict.hash !== '';
  const isRight = strict.hash === expected;
  showCard(section, 'strict', strict, {
    verdict: !isHashed ? '' : isRight ? 'good' : 'bad',
    words: !isHashed
      ? 'No hash here'
      : isRight
        ? '\u2713 The same bits'
        : '\u2717 Other bits than expected',
    facts: isHashed
      ? 'Rounds each product and each sum, in ascending k.'
      : 'Without HTTPS, the browser cannot hash.',
  });
  showCard(section, 'fast', fast, {
    verdict: '',
    words: different === 0 ? '= The same on this machine' : '\u2260 Differs, and may',
    facts:
      different === 0
        ? 'Here its kernels happen to sum in the same order, and fuse nothing.'
        : `${whole(different)} of ${whole(count)} numbers have other last bits: it may sum in ` +
          'another order, and fuse a multiply-add.',
  });
  find(section, '#bits-table tbody').replaceChildren(
    ...strict.first.map((value, i) => rowOf(i, value, fast.first[i]!)),
  );
}

function showCard(
  section: HTMLElement,
  name: 'strict' | 'fast',
  { hash, build, threads }: Bits,
  { verdict, words, facts }: { verdict: string; words: string; facts: string },
): void {
  find(section, `#bits-${name}`).dataset.verdict = verdict;
  find(section, `#bits-${name}-verdict`).textContent = words;
  find(section, `#bits-${name}-facts`).textContent =
    `${facts} Computed by the build ${build} on ${threadsOf(threads)}.`;
  showHash(section, `#bits-${name}-hash`, hash);
}

/** Eight digits per group. The text of the element is the hash alone. */
function showHash(section: HTMLElement, query: string, hash: string): void {
  const groups = hash.match(/.{8}/g) ?? ['-'];
  find(section, query).replaceChildren(...groups.map((group) => make('span', group)));
}

// --- the table -----------------------------------------------------------------------------------

function rowOf(i: number, strict: number, fast: number): HTMLElement {
  const row = make('tr');
  const head = make('th', `0, ${i}`);
  head.scope = 'row';
  const [strictHex, fastHex] = [hexOf(strict), hexOf(fast)];
  row.append(head, cellOf(strict, [strictHex]), cellOf(fast, marked(fastHex, strictHex)));
  return row;
}

function cellOf(value: number, bits: (string | HTMLElement)[]): HTMLElement {
  const cell = make('td', decimalOf(value));
  const code = make('code');
  code.append(...bits);
  cell.append(' ', code);
  return cell;
}

/** Nine digits tell every float32 from its neighbours. */
const decimalOf = (value: number) => value.toPrecision(9);

function hexOf(value: number): string {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  return view.getUint32(0).toString(16).padStart(8, '0');
}

/** The digits from the first that differs on, as a mark. */
function marked(digits: string, others: string): (string | HTMLElement)[] {
  const same = [...digits].findIndex((digit, i) => digit !== others[i]);
  return same < 0 ? [digits] : [digits.slice(0, same), make('mark', digits.slice(same))];
}
