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

/** What to do where no server is configured. */
export function NoServers() {
  return (
    <Empty title="No servers yet">
      <p>
        Toolway's own tools work already. Servers join by the configuration: it is read again as soon as the file is
        saved, and nobody is disconnected.
      </p>
      <p>Take over what your editors have configured:</p>
      <Code text="toolway init" label="Command that finds the servers of your editors" />
      <p>
        Or write it into <code>toolway.yaml</code>:
      </p>
      <Code text={example} label="Example of toolway.yaml" />
      <a href={pathTo('config')}>Which files are read</a>
    </Empty>
  )
}
