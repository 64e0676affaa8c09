/*
 * What Toolway knows of MCP clients, by the `clientInfo.name` that they send. An unknown client gets the defaults.
 */

export interface KnownClient {
  /** Searches among listed tools by itself, so that it wants all of them, and short instructions (V14). */
  readonly searchesTools?: true
  /** Passes definitions unchanged to a model API that refuses some schemas, so that it gets portable ones (W8). */
  readonly schemas?: 'portable'
  /** How many tokens of a result the client passes to its model. It cuts longer ones, or refuses them. */
  readonly maxResultTokens?: number
}

const knownClients: Readonly<Record<string, KnownClient>> = {
  'claude-code': { searchesTools: true, maxResultTokens: 20_000 },
  'github-copilot-developer': { searchesTools: true },
  'github-copilot-cli': { searchesTools: true },
  'copilot-cli': { searchesTools: true },
  'codex-mcp-client': { maxResultTokens: 20_000 },
  'gemini-cli-mcp-client': { schemas: 'portable' },
}

const unknownClient: KnownClient = {}

/** What is known of a client. Names are compared without case, and spaces and underscores are hyphens. */
export const knownClient = (name = ''): KnownClient => {
  const key = name
    .trim()
    .toLowerCase()
    .replaceAll(/[\s_]+/g, '-')
    // Some versions add the name that the server has in their configuration.
    .replace(/^(gemini-cli-mcp-client)-.*/, '$1')
  return Object.hasOwn(knownClients, key) ? (knownClients[key] as KnownClient) : unknownClient
}
