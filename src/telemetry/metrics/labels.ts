import { errorKinds } from '../../core/errors.ts'

/** The names that become labels. Each kind has one book, so that a tool is called the same everywhere or nowhere. */
export interface Labels {
  tool(name: string): string
  server(name: string): string
  agent(name: string): string
  /** One of our codes, or what a server made up. */
  error(code: string): string
  operation(name: string): string
}

/**
 * How many of each get a label. A tool costs some twenty lines of the page, most of them buckets; servers are the
 * operator's own, and methods and codes only so many unless somebody makes them up.
 */
const most = { tools: 200, servers: 200, agents: 100, errors: 60, operations: 30 }

/** What a tool that reports its own failure is counted under, where our codes stand otherwise. */
export const toolError = 'tool_error'

export function createLabels(redact: (text: string) => string): Labels {
  return {
    tool: labelValues({ most: most.tools, redact }),
    server: labelValues({ most: most.servers, redact }),
    agent: labelValues({ most: most.agents, redact }),
    // However many a server makes up, there is room for ours, by which everybody else's failures are known.
    error: labelValues({ most: most.errors, own: [...Object.keys(errorKinds), toolError], redact }),
    operation: labelValues({ most: most.operations, redact }),
  }
}

/** What every value is called that came too late for a name of its own. */
export const other = 'other'

/** Longer names are cut: a page of bounded many labels must not be unbounded by their length. */
const longest = 120
/** And what nobody could have meant as a name is not even remembered. */
const absurd = 1000

interface LabelValuesOptions {
  /** How many different values get a label of their own. */
  readonly most: number
  /** Names of ours: they have labels from the beginning, and are no secret. */
  readonly own?: readonly string[]
  redact(text: string): string
}

/**
 * Gives names of tools, agents and the like a label each, until there are enough of them; all the others are `other`.
 * What a name is called is decided when it is first met and stays, so that no series ever changes its meaning.
 */
export function labelValues({ most, own = [], redact }: LabelValuesOptions): (name: string) => string {
  const known = new Map<string, string>(own.map((name) => [name, name]))
  return (name) => {
    const before = known.get(name)
    if (before !== undefined) return before
    // Nothing is remembered of those that come too late: they may be any number.
    if (known.size >= most || name.length > absurd) return other
    const value = shortened(redact(name))
    known.set(name, value)
    return value
  }
}

/** Half of a surrogate pair would become another character on the wire, and two series might become one. */
const shortened = (text: string): string =>
  (text.length <= longest ? text : `${text.slice(0, longest - 1)}…`).toWellFormed()

/** A redactor that fails must neither let anything through nor fail the call that is only watched. */
export const safeRedact =
  (redact: (text: string) => string): ((text: string) => string) =>
  (text) => {
    try {
      return redact(text)
    } catch {
      return 'dropped'
    }
  }
