const head = `# Toolway: one endpoint in front of all your MCP servers.
# Everything here is optional; whatever is left out has a sensible default.

version: 1

`

const example = `# The servers to put behind Toolway. The entries of Claude, Cursor and other clients work here as they are.
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

const tail = `server:
  host: 127.0.0.1          # only this machine; anything wider should stand behind TLS
  port: 4322

auth:
  token: generated         # made once, kept between starts, printed by serve | none | a value of your own

naming:
  strategy: prefix         # filesystem__read_file; or flat: read_file
  separator: "__"

telemetry:
  log: info                # debug | info | warn | error
`

/** The file that `init` writes where it finds nothing: valid as it stands, a first server one uncommented block away. */
export const starter = head + example + tail

/** The same with these servers, as they stand under `mcpServers`. */
export const starterWith = (servers: string): string =>
  `${head}# The servers behind Toolway. \`toolway add\` and \`toolway import FILE\` put more here.\nmcpServers:\n${servers}\n${tail}`
