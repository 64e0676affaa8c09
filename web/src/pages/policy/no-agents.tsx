import { Code } from '../../parts/code.tsx'
import { Empty } from '../../parts/states.tsx'

const example = `agents:
  researcher:
    allow:
      servers: [filesystem, github]
    deny:
      tools: { filesystem: ["write_*", "move_file"] }
    perMinute: 120
  researcher.junior:          # inherits researcher, and can only be less
    deny: { servers: [github] }`

/** What agents are good for, where there are none or one. */
export function NoAgents() {
  return (
    <Empty title="Give each agent its own rules">
      <p>
        Without <code>agents</code> in the configuration there is one user who may use everything. As soon as one agent
        is configured, everything not allowed is denied:
      </p>
      <Code text={example} label="Example of agents in toolway.yaml" />
      <p>Then give each its own credential, and ask what it may do:</p>
      <Code
        text={'toolway keys create ci --agent researcher\ntoolway why researcher filesystem.write_file'}
        label="Commands for keys and rules"
      />
    </Empty>
  )
}
