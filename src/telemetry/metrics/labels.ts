import { errorKinds } from '../../core/errors.ts'
import { labelValues } from './label-values.ts'

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
