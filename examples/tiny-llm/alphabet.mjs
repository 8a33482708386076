// The tokens of the model: 96 characters, which are a line break and the printable ones of ASCII.

export const alphabet = '\n' + String.fromCharCode(...Array.from({ length: 95 }, (_, i) => 32 + i));

/** The tokens of a text. Other characters are left out. */
export function encode(text) {
  return Uint8Array.from([...text].map((character) => alphabet.indexOf(character))).filter(
    (token) => token < alphabet.length,
  );
}

/** The text of tokens. */
export const decode = (tokens) => Array.from(tokens, (token) => alphabet[token]).join('');
