import { Code } from '../../parts/code.tsx'
import { Empty } from '../../parts/states.tsx'
import { pathTo } from '../../routing/route.ts'

const example = `mcpServers:
  filesystem:
    description: Files under ./sandbox
    command: npx
    args: [-y, "@modelcontextprotocol/server-filesystem", ./sandbox]
  docs:
    url: https://mcp.example.com/mcp`

export function NoServers() {
  return (
    <Empty title="No servers yet">
      <p>
        Toolway's native tools already work. Add servers in the configuration: it is reloaded when you save the file,
        and clients stay connected.
      </p>
      <p>Import the servers that your editors use:</p>
      <Code text="toolway init" label="Command to import servers from your editors" />
      <p>
        Or add them to <code>toolway.yaml</code>:
      </p>
      <Code text={example} label="Example: servers in toolway.yaml" />
      <a href={pathTo('config')}>See which files are read</a>
    </Empty>
  )
}
