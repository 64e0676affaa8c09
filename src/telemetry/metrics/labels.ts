import { errorKinds } from '../../core/errors.ts'

/** Label values. Each kind has one registry, so that a tool has the same label in all metrics. */
export interface Labels {
  tool(name: string): string
  server(name: string): string
  agent(name: string): string
  /** One of our codes, or a server's own. */
  error(code: string): string
  operation(name: string): string
}

/**
 * Maximum number of labels. A tool takes about twenty lines of the page, mostly buckets. Servers come from the
 * configuration; methods and codes are few unless callers make them up.
 */
const most = { tools: 200, servers: 200, agents: 100, errors: 60, operations: 30 }

/** Label of failures that a tool reports itself, in place of an error code. */
export const toolError = 'tool_error'

export function createLabels(redact: (text: string) => string): Labels {
  return {
    tool: labelValues({ most: most.tools, redact }),
    server: labelValues({ most: most.servers, redact }),
    agent: labelValues({ most: most.agents, redact }),
    // Reserve labels for our own codes, however many codes servers make up.
    error: labelValues({ most: most.errors, own: [...Object.keys(errorKinds), toolError], redact }),
    operation: labelValues({ most: most.operations, redact }),
  }
}

export const other = 'other'

/** Longer names are truncated, to bound the size of the page. */
const longest = 120
/** Longer texts are not names and are not cached. */
const absurd = 1000

interface LabelValuesOptions {
  readonly most: number
  /** Our own names: labelled from the start, and not redacted. */
  readonly own?: readonly string[]
  redact(text: string): string
}

/**
 * Assigns labels to names until the maximum is reached; the rest is `other`. A name keeps its first label, so that no
 * series changes its meaning.
 */
export function labelValues({ most, own = [], redact }: LabelValuesOptions): (name: string) => string {
  const known = new Map<string, string>(own.map((name) => [name, name]))
  return (name) => {
    const before = known.get(name)
    if (before !== undefined) return before
    // Do not cache names beyond the maximum: their number is unbounded.
    if (known.size >= most || name.length > absurd) return other
    const value = shortened(redact(name))
    known.set(name, value)
    return value
  }
}

/** A lone surrogate would be replaced in UTF-8, which could merge two series. */
const shortened = (text: string): string =>
  (text.length <= longest ? text : `${text.slice(0, longest - 1)}…`).toWellFormed()

/** If the redactor fails, drop the text: neither leak it nor fail the observed call. */
export const safeRedact =
  (redact: (text: string) => string): ((text: string) => string) =>
  (text) => {
    try {
      return redact(text)
    } catch {
      return 'dropped'
    }
  }
