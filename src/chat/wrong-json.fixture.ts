/** Ways to write an object as invalid JSON. */
export interface WrongJson {
  readonly what: string
  readonly write: (value: object) => string
  /** Whether the object can still be repaired. */
  readonly isMended: boolean
}

const json = (value: object): string => JSON.stringify(value)
const mended = (what: string, write: (value: object) => string): WrongJson => ({ what, write, isMended: true })
const hopeless = (what: string, write: (value: object) => string): WrongJson => ({ what, write, isMended: false })

export const wrongJson: readonly WrongJson[] = [
  mended('in a fence', (value) => `\`\`\`json\n${json(value)}\n\`\`\``),
  mended('in a fence that never ends', (value) => `\`\`\`\n${json(value)}`),
  mended('behind prose', (value) => `Sure! Here you are: ${json(value)}`),
  mended('in front of prose', (value) => `${json(value)}\n\nI hope this helps!`),
  mended('behind a thought', (value) => `<think>What would {"a": 1} be?</think>\n${json(value)}`),
  mended('in front of a special token', (value) => `${json(value)}<|im_end|>`),
  mended('behind a byte order mark', (value) => `\ufeff${json(value)}`),
  mended('as Python', (value) => json(value).replaceAll('"', "'")),
  mended('with typographic quotes', (value) => json(value).replaceAll(/"([^"]*)"/g, '“$1”')),
  mended('with bare keys', (value) => json(value).replaceAll(/"(\w+)":/g, '$1:')),
  mended('with a comma at the end', (value) => json(value).replace(/\}$/, ',}')),
  mended('with two commas', (value) => json(value).replace(/\}$/, ',,}')),
  mended('with a comment', (value) => json(value).replace('{', '{ // so:\n')),
  mended('with a comment in the middle', (value) => json(value).replace(':', ': /* here */ ')),
  mended('with equals signs', (value) => json(value).replaceAll('":', '" =')),
  mended('with arrows', (value) => json(value).replaceAll('":', '" => ')),
  mended('without its first brace', (value) => json(value).slice(1)),
  mended('without its last brace', (value) => json(value).slice(0, -1)),
  mended('with a brace too many', (value) => `${json(value)}}`),
  mended('as a string', (value) => JSON.stringify(json(value))),
  mended('in an envelope', (value) => json({ response: value })),
  mended('in a list', (value) => json([value])),
  mended('spread over lines', (value) => JSON.stringify(value, null, 4)),
  hopeless('as prose', () => 'I would rather talk about the sea.'),
  hopeless('not at all', () => ''),
  hopeless('as spaces', () => ' \n\t '),
  hopeless('as null', () => 'null'),
  hopeless('as a number', () => '42'),
  hopeless('as an empty list', () => '[]'),
  hopeless('as an empty object', () => '{}'),
  hopeless('under other names', (value) => json({ ...renamed(value), more: 1 })),
  hopeless('with values of other types', (value) => json(retyped(value))),
  hopeless('cut off', (value) => json(value).slice(0, 12)),
  hopeless('as a page', () => '<!doctype html><title>502 Bad Gateway</title>'),
  hopeless('as a thought that never ends', (value) => `<think>I could say ${json(value)}`),
  hopeless('as a thousand braces', () => '{'.repeat(1_000)),
  hopeless('as noise', () => '\u0000\ufffd}{"[\\'),
]

const renamed = (value: object): object =>
  Object.fromEntries(Object.entries(value).map(([name, member]) => [`${name}_`, member]))

const retyped = (value: object): object =>
  Object.fromEntries(Object.keys(value).map((name, index) => [name, index + 7]))
