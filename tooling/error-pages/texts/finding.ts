import type { PageText } from '../page-text.ts'

/** Names that lead nowhere. */
export const finding = {
  TOOL_NOT_FOUND: {
    happened: 'No tool, resource or prompt of that name, or a spelling that fits several',
    remedy: 'Take a name from the message, from `tools/list` or `find_tool`',
    causes: [
      'The name is misspelt, or the tool belongs to a server that this gateway does not have.',
      'The spelling fits several tools; the message then lists their exact names.',
      'The server has removed or renamed the tool since it was listed.',
      'The operator keeps the tool out of the catalog (`mcpServers.*.tools`).',
    ],
    model: [
      'Use one of the names in the message.',
      'If it names none, list again (`tools/list`) or search (`find_tool`); do not guess further spellings.',
    ],
    operator: [
      '`toolway tools` lists every tool with the name that it is served under.',
      'A tool that exists but is not allowed is refused with [DENIED_BY_POLICY](DENIED_BY_POLICY.md) when it is called by its exact name, never with this code.',
    ],
    keys: ['mcpServers.*.tools.include', 'mcpServers.*.tools.exclude', 'naming.strategy', 'naming.aliases'],
    commands: ['toolway tools', 'toolway tools show TOOL'],
    related: ['SERVER_NOT_FOUND', 'SERVER_UNAVAILABLE', 'DENIED_BY_POLICY'],
  },
  SERVER_NOT_FOUND: {
    happened: 'No server of that name',
    remedy: 'Take a name from `list_servers`',
    causes: [
      'The name is misspelt; the message suggests what comes near among the servers that the agent may use.',
      'The server is not in `mcpServers` of this gateway, or is left out because its address is the gateway itself.',
    ],
    model: ['Use the name that the message suggests, or one from `list_servers`.'],
    operator: [
      '`toolway servers` lists every server and how it is.',
      '`toolway validate` says what was understood of the configuration.',
    ],
    keys: ['mcpServers'],
    commands: ['toolway servers', 'toolway validate'],
    related: ['TOOL_NOT_FOUND', 'NAMESPACE_NOT_ALLOWED'],
  },
} as const satisfies Record<string, PageText>
