const unescaped: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' }

const entities: Readonly<Record<string, string>> = {
  '&quot;': '"',
  '&#34;': '"',
  '&#39;': "'",
  '&apos;': "'",
  '&lt;': '<',
  '&gt;': '>',
  '&amp;': '&',
}

/**
 * The same text with one layer of encoding taken away, where it looks as if it had one too many: `{\"a\": 1}`,
 * `{&quot;a&quot;: 1}`, or the whole of it inside a string.
 */
export function decodedOnce(text: string): string | undefined {
  const quote = /^[^{[]*[{[](?:\\[nrt]|\s){0,64}(\\"|&quot;|&#34;)/.exec(text)?.[1]
  if (quote === '\\"') {
    return text.replace(/\\([\s\S])/g, (_, sign: string) => unescaped[sign] ?? sign)
  }
  if (quote?.startsWith('&')) {
    return text.replace(/&(?:quot|#34|#39|apos|lt|gt|amp);/g, (entity) => entities[entity] as string)
  }
  return undefined
}
