import type { PageText } from '../page-text.ts'

/** Unknown names. */
export const finding = {
  TOOL_NOT_FOUND: {
    happened: 'No tool, resource or prompt has that name, or the name is ambiguous',
    remedy: 'Use a name from the message, `tools/list` or `find_tool`',
    causes: [
      'The name is misspelt, or the tool belongs to a server that this gateway does not have.',
      'The name matches several tools; the message lists their exact names.',
      'The server has removed or renamed the tool since it was listed.',
      'The operator excluded the tool from the catalog (`mcpServers.*.tools`).',
    ],
    model: [
      'Use one of the names in the message.',
      'If the message contains no names, list the tools again (`tools/list`) or search (`find_tool`). Do not guess.',
    ],
    operator: [
      '`toolway tools` lists every tool with its served name.',
      'If a tool exists but is not allowed, a call by its exact name fails with [DENIED_BY_POLICY](DENIED_BY_POLICY.md), never with this code.',
    ],
    keys: ['mcpServers.*.tools.include', 'mcpServers.*.tools.exclude', 'naming.strategy', 'naming.aliases'],
    commands: ['toolway tools', 'toolway tools show TOOL'],
    related: ['SERVER_NOT_FOUND', 'SERVER_UNAVAILABLE', 'DENIED_BY_POLICY'],
  },
  SERVER_NOT_FOUND: {
    happened: 'No server has that name',
    remedy: 'Use a name from `list_servers`',
    causes: [
      'The name is misspelt. The message suggests similar names among the servers that the agent may use.',
      "The server is not listed under `mcpServers` in this gateway's configuration, or was excluded because its address is the gateway's own address.",
    ],
    model: ['Use the name that the message suggests, or one from `list_servers`.'],
    operator: [
      '`toolway servers` lists every server with its status.',
      '`toolway validate` shows how Toolway interprets the configuration.',
    ],
    keys: ['mcpServers'],
    commands: ['toolway servers', 'toolway validate'],
    related: ['TOOL_NOT_FOUND', 'NAMESPACE_NOT_ALLOWED'],
  },
} as const satisfies Record<string, PageText>
