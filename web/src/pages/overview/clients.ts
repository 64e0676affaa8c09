/** Instructions for connecting a client to Toolway. */
export interface Client {
  readonly name: string
  /** Where the user must put the text: in a file, or in a terminal. */
  readonly target: string
  readonly text: string
}

const json = (value: unknown): string => JSON.stringify(value, null, 2)

/** The instructions for each client. The token is never shown; clients read it from the environment or ask for it. */
export const clientsFor = (url: string, name = 'toolway'): Readonly<Record<string, Client>> => ({
  claude: {
    name: 'Claude Code',
    target: 'in a terminal',
    text: `claude mcp add --transport http ${name} ${url} --header "Authorization: Bearer $TOOLWAY_TOKEN"`,
  },
  cursor: {
    name: 'Cursor',
    target: '~/.cursor/mcp.json',
    text: json({ mcpServers: { [name]: { url, headers: { Authorization: `Bearer \${env:TOOLWAY_TOKEN}` } } } }),
  },
  vscode: {
    name: 'VS Code',
    target: '.vscode/mcp.json',
    text: json({
      inputs: [{ id: 'toolway', type: 'promptString', description: 'Toolway token', password: true }],
      servers: { [name]: { type: 'http', url, headers: { Authorization: `Bearer \${input:toolway}` } } },
    }),
  },
  codex: {
    name: 'Codex',
    target: '~/.codex/config.toml',
    text: `[mcp_servers.${name}]\nurl = ${JSON.stringify(url)}\nbearer_token_env_var = "TOOLWAY_TOKEN"`,
  },
  gemini: {
    name: 'Gemini CLI',
    target: '~/.gemini/settings.json',
    text: json({ mcpServers: { [name]: { httpUrl: url, headers: { Authorization: 'Bearer $TOOLWAY_TOKEN' } } } }),
  },
  opencode: {
    name: 'OpenCode',
    target: 'opencode.json',
    text: json({ mcp: { [name]: { type: 'remote', url, headers: { Authorization: 'Bearer {env:TOOLWAY_TOKEN}' } } } }),
  },
  curl: {
    name: 'curl',
    target: 'in a terminal',
    text: [
      `curl ${url}`,
      '  -H "Authorization: Bearer $TOOLWAY_TOKEN"',
      '  -H "Content-Type: application/json" -H "Accept: application/json, text/event-stream"',
      `  -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}'`,
    ].join(' \\\n'),
  },
})
