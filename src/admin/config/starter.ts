const starterHead = `# Toolway: one endpoint in front of all your MCP servers.
# Everything here is optional and has a default.

version: 1

`

const example = `# The servers to put behind Toolway. Entries from Claude, Cursor and other clients work here unchanged.
# Uncomment, adapt, and check with: toolway validate
#
# mcpServers:
#   filesystem:
#     description: Files under this folder
#     command: npx
#     args: [-y, "@modelcontextprotocol/server-filesystem", .]
#
#   remote:
#     url: https://example.com/mcp
#     headers: { Authorization: "Bearer \${REMOTE_TOKEN}" }     # from the environment; unset is an error

`

const starterTail = `server:
  host: 127.0.0.1          # only this machine; other addresses should be behind TLS
  port: 4322

auth:
  token: generated         # generated once, kept, printed by serve | none | your own value

naming:
  strategy: prefix         # filesystem__read_file; or flat: read_file
  separator: "__"

telemetry:
  log: info                # debug | info | warn | error
`

/** The configuration that `init` writes if it finds no servers. It is valid without changes. */
export const starter = starterHead + example + starterTail

export const starterWith = (servers: string): string =>
  `${starterHead}# The servers behind Toolway. \`toolway add\` and \`toolway import FILE\` add more here.\nmcpServers:\n${servers}\n${starterTail}`
