/** Converts a JSON number. `source` is how it was written, `value` the nearest double. */
export type ReadNumber = (source: string, value: number) => unknown

/**
 * Parses JSON. Use it instead of `JSON.parse`, which has a bug in Node 24 and 26: for a member name with an escape, it may
 * return a different name from an earlier text (https://github.com/nodejs/node/issues/63785). A caller could use this to
 * hide an argument from the policy. `readNumber` replaces each number.
 */
export function jsonValue(text: string, readNumber?: ReadNumber): unknown {
  if (!text.includes('\\') || !escapedName.test(text)) {
    return readNumber ? JSON.parse(text, reviver(readNumber)) : JSON.parse(text)
  }
  // Invalid JSON throws here; what follows can rely on the syntax.
  JSON.parse(text)
  return readValid(text, readNumber ?? ((_, value) => value))
}

/** The same, but undefined for text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return jsonValue(text)
  } catch {
    return undefined
  }
}

/**
 * Replaces lone surrogates in text from `JSON.stringify` by U+FFFD. Other parsers than JavaScript's reject the whole text for
 * one lone surrogate.
 */
export function wellFormedJson(text: string): string {
  if (!text.includes('\\ud')) return text
  // `JSON.stringify` escapes only lone surrogates. Match all escapes, because `\\ud83d` is an escaped backslash and text.
  return text.replace(/\\(?:(ud[89a-f][0-9a-f]{2})|.)/g, (written, lone) => (lone === undefined ? written : '\ufffd'))
}

/** Matches all member names with an escape, and some other strings, which only costs time. */
const escapedName = /[{,][ \t\r\n]*"[^"\\]*\\/

const reviver = (readNumber: ReadNumber) =>
  ((_key: string, value: unknown, { source }: { readonly source?: string }) =>
    typeof value === 'number' && source !== undefined ? readNumber(source, value) : value) as (
    key: string,
    value: unknown,
  ) => unknown

interface Container {
  readonly value: unknown[] | Record<string, unknown>
  /** The name of the member whose value comes next. */
  name: string | undefined
}

/** Reads valid JSON without recursion, as `JSON.parse` does: text can be nested deeper than the stack allows. */
function readValid(text: string, readNumber: ReadNumber): unknown {
  let root: unknown
  let current: Container | undefined
  const parents: (Container | undefined)[] = []
  const add = (value: unknown) => {
    if (current === undefined) root = value
    else if (Array.isArray(current.value)) current.value.push(value)
    else {
      setMember(current.value, current.name as string, value)
      current.name = undefined
    }
  }
  for (let at = 0; at < text.length; ) {
    const start = at
    switch (text[at]) {
      case '{':
      case '[': {
        const value = text[at] === '{' ? {} : []
        add(value)
        parents.push(current)
        current = { value, name: undefined }
        at++
        break
      }
      case '}':
      case ']':
        current = parents.pop()
        at++
        break
      case '"': {
        at = endOfString(text, start)
        const string: string = JSON.parse(text.slice(start, at))
        const isName = current && !Array.isArray(current.value) && current.name === undefined
        if (current && isName) current.name = string
        else add(string)
        break
      }
      case ' ':
      case '\t':
      case '\r':
      case '\n':
      case ',':
      case ':':
        at++
        break
      default: {
        at = endOfLiteral(text, start)
        const source = text.slice(start, at)
        const value: unknown = JSON.parse(source)
        add(typeof value === 'number' ? readNumber(source, value) : value)
      }
    }
  }
  return root
}

/** Assigning `__proto__` would set the prototype. */
function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}

function endOfString(text: string, start: number): number {
  let at = start
  do at = text.indexOf('"', at + 1)
  while (isEscaped(text, at))
  return at + 1
}

/** Whether an odd number of backslashes comes before this position. */
function isEscaped(text: string, at: number): boolean {
  let before = at
  while (text[before - 1] === '\\') before--
  return (at - before) % 2 === 1
}

function endOfLiteral(text: string, start: number): number {
  const rest = /[,\]} \t\r\n]|$/g
  rest.lastIndex = start
  return rest.exec(text)?.index ?? text.length
}
