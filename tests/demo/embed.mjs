// Tests of the embeddings of a model that a visitor gives.
import { encodeGraph } from '../peers/onnx-model.mjs';
import { refuse } from '../package/results.mjs';

const words = ['?', 'cat', 'kitten', 'dog', 'engine'];
/** A vector per word. The vectors of cat and kitten are close. */
const vectors = Float32Array.of(0.1, 0.1, 0.1, 1, 0.1, 0, 1, 0.2, 0, 0, 1, 0, 0, 0, 1);

const files = {
  'model.onnx': encodeGraph({
    nodes: [{ op: 'Gather', inputs: ['t', 'input_ids'], outputs: ['last_hidden_state'] }],
    initializers: [{ name: 't', dtype: 'float32', shape: [words.length, 3], data: vectors }],
    inputs: [{ name: 'input_ids', dtype: 'int64', shape: ['batch', 'tokens'] }],
    outputs: [{ name: 'last_hidden_state', dtype: 'float32', shape: ['batch', 'tokens', 3] }],
  }),
  'tokenizer.json': {
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: { type: 'Whitespace' },
    post_processor: null,
    decoder: null,
    model: {
      type: 'WordPiece',
      unk_token: '?',
      vocab: Object.fromEntries(words.map((word, id) => [word, id])),
    },
  },
  'config.json': { max_position_embeddings: 512 },
};

/** Chooses a folder, as the dialog of a browser does. */
const choose = (tab, folder, chosen) =>
  tab.evaluate(
    (folder, chosen) => {
      // A script cannot give an input files with paths.
      const list = chosen.map(([name, base64]) => {
        const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
        const path = { value: `${folder}/${name}` };
        return Object.defineProperty(new File([bytes], name), 'webkitRelativePath', path);
      });
      const input = document.querySelector('#embed-folder');
      Object.defineProperty(input, 'files', { value: list, configurable: true });
      input.dispatchEvent(new Event('change'));
    },
    folder,
    Object.entries(chosen).map(([name, content]) => {
      const bytes = content instanceof Uint8Array ? content : JSON.stringify(content);
      return [name, Buffer.from(bytes).toString('base64')];
    }),
  );

const foundIn = (tab) =>
  tab.evaluate(() =>
    [...document.querySelectorAll('#embed-found li')].map(({ textContent }) => textContent),
  );

export async function testEmbed(test, tab) {
  await test('says what a folder lacks', async () => {
    await tab.waitFor('the part', () => 'started' in document.querySelector('#embed').dataset);
    await choose(tab, 'my-model', { 'model.onnx': files['model.onnx'] });
    const says = await tab.waitFor('the notice', () => {
      const notice = document.querySelector('#embed .notice');
      return !notice.hidden && notice.innerText;
    });
    if (!/^folder my-model has no tokenizer\.json/.test(says)) refuse(`it says: ${says}`);
  });
  await test('finds the nearest texts by the model of a folder', async () => {
    await choose(tab, 'my-model', files);
    await tab.waitFor('the examples', () => document.querySelector('#embed-found').children.length);
    await tab.evaluate(() => {
      document.querySelector('#embed-texts').value = 'engine\n\nkitten\ndog dog';
      document.querySelector('#embed-found').replaceChildren();
    });
    await tab.retype('#embed-query', 'cat');
    await tab.press('Enter');
    await tab.waitFor('the texts', () => document.querySelector('#embed-found').children.length);
    const found = await foundIn(tab);
    if (!/^0\.99\d kitten$/.test(found[0]) || found.length !== 3) refuse(`it finds ${found}`);
    const says = await tab.textOf('#embed-facts');
    if (!/^model\.onnx: .* per text, pooling mean, at most 512 tokens\.$/.test(says))
      refuse(`it says: ${says}`);
    return found.join(', ');
  });
}
