import { Code } from '../../parts/code.tsx'
import { Empty } from '../../parts/states.tsx'

const example = `agents:
  researcher:
    allow:
      servers: [filesystem, github]
    deny:
      tools: { filesystem: ["write_*", "move_file"] }
    perMinute: 120
  researcher.junior:          # inherits from researcher; can only restrict it further
    deny: { servers: [github] }`

/** Introduces agents, if there is none or only one. */
export function NoAgents() {
  return (
    <Empty title="Give each agent its own rules">
      <p>
        Without <code>agents</code> in the configuration, there is a single user who may use everything. As soon as one
        agent is configured, everything that is not allowed is denied:
      </p>
      <Code text={example} label="Example: agents in toolway.yaml" />
      <p>Then create a key for each agent and check what it may do:</p>
      <Code
        text={'toolway keys create ci --agent researcher\ntoolway why researcher filesystem.write_file'}
        label="Commands for keys and rules"
      />
    </Empty>
  )
}
