import fc from 'fast-check'

/** Documents like those that models write: arguments of tools, lists of names, nested settings. */
const text = fc.constantFrom(
  'Paris',
  'New York',
  'a b',
  'it is so',
  '/tmp/a.txt',
  'x-1',
  'https://a.example/b?c=d',
  'Zürich',
  'yes',
)
const key = fc.constantFrom('city', 'gender', 'path', 'max_results', 'unit', 'query', 'tags', 'when')
const scalar = fc.oneof(text, text, fc.integer({ min: -50, max: 5000 }), fc.boolean(), fc.constant(null))
const inner = fc.oneof(
  { arbitrary: scalar, weight: 4 },
  fc.array(text, { minLength: 1, maxLength: 3 }),
  fc.dictionary(key, scalar, { minKeys: 1, maxKeys: 3, noNullPrototype: true }),
)
export const documents = fc
  .dictionary(key, inner, { minKeys: 2, maxKeys: 5, noNullPrototype: true })
  // A number at the end would not show whether it was cut off.
  .map((value) => ({ ...value, last: 'end' }) as Record<string, unknown>)

/** One thing that models do wrong, done to a document that is spread over lines or not; undefined where it cannot be. */
const flaws: Readonly<Record<string, (json: string, pick: (count: number) => number) => string | undefined>> = {
  'missing brace': (json) => json.replace(/\s*\}\s*$/, ''),
  'trailing comma': (json) => json.replace(/(\s*)\}\s*$/, ',$1}'),
  'single quotes': (json) => json.replaceAll('"', "'"),
  'unquoted keys': (json) => json.replace(/(["'])(\w+)\1(\s*:)/g, '$2$3'),
  'missing opening quote': (json, pick) => without(json, /(?<=:\s*)["'](?=[^"'\n]*["'])/g, pick),
  'missing closing quote': (json, pick) => without(json, /(?<=:\s*["'][^"'\n]*)["'](?=,)/g, pick),
  'missing comma': (json, pick) => without(json, /,(?=\s*\n)/g, pick),
  comments: (json, pick) => replaced(json, /,(?=\s*\n)/g, ', // as you asked', pick),
  'python literals': (json) =>
    json.replace(
      /\b(?:true|false|null)\b/g,
      (word) => ({ true: 'True', false: 'False', null: 'None' })[word] as string,
    ),
  fence: (json) => `\`\`\`json\n${json}\n\`\`\``,
  prose: (json) => `Sure, here is what you asked for:\n${json}\nTell me if you need more.`,
}

/** Flaws that wrap what is written go last. */
const wraps = ['fence', 'prose']
const names = Object.keys(flaws)
export const pairs: readonly (readonly [string, string])[] = names
  .flatMap((one, index) => names.slice(index + 1).map((other): [string, string] => [one, other]))
  .filter(([one, other]) => !(wraps.includes(one) && wraps.includes(other)))

export function flawed(
  value: unknown,
  [one, other]: readonly [string, string],
  seed: number,
  spread = true,
): string | undefined {
  let state = seed
  const pick = (count: number) => {
    state = (state * 48_271) % 2_147_483_647
    return state % count
  }
  // Line ends are how a missing comma or quote can be recognized.
  const lines = JSON.stringify(value, null, 2)
  const json = spread ? lines : lines.replaceAll(/\n\s*/g, ' ').replaceAll(/([{[]) | ([}\]])/g, '$1$2')
  // What is removed at the end is removed last, so that the others find it.
  const order = [one, other].toSorted((a, b) => rank(a) - rank(b))
  let text: string | undefined = json
  for (const name of order) {
    const before: string | undefined = text
    text = text === undefined ? undefined : flaws[name]?.(text, pick)
    if (text === before && name !== 'python literals') return undefined
  }
  return text
}

const rank = (name: string): number =>
  wraps.includes(name) ? 3 : name === 'missing brace' ? 2 : name === 'trailing comma' ? 1 : 0

function without(json: string, place: RegExp, pick: (count: number) => number): string | undefined {
  return replaced(json, place, '', pick)
}

function replaced(json: string, place: RegExp, by: string, pick: (count: number) => number): string | undefined {
  const found = [...json.matchAll(place)]
  const chosen = found[pick(Math.max(found.length, 1))]
  if (!chosen) return undefined
  return json.slice(0, chosen.index) + by + json.slice(chosen.index + chosen[0].length)
}
