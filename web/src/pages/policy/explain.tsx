import { useId } from 'preact/hooks'
import type { WhyView } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin, selectableAgents } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
import { Card } from '../../components/page.tsx'
import { Loaded } from '../../components/states.tsx'
import { query, setQuery } from '../../routing/location.ts'
import './decision.css'
import { CodeBlock } from '../../components/code-block.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { allowedStatus, deniedStatus } from '../../components/statuses.ts'

/** Explains a decision. The agent and the tool are in the address, so that the explanation can be shared. */
export function ExplainView() {
  const agent = query.value.get('agent') ?? ''
  const tool = query.value.get('tool') ?? ''
  return (
    <>
      <Card title="Explain a decision">
        <ExplainForm key={`${agent} ${tool}`} agent={agent} tool={tool} />
      </Card>
      {agent !== '' && tool !== '' && <Explanation key={`${agent} ${tool}`} agent={agent} tool={tool} />}
    </>
  )
}

function Explanation({ agent, tool }: { readonly agent: string; readonly tool: string }) {
  const why = useResource<WhyView>(queries.why(agent, tool), `${agent} ${tool}`)
  return (
    <Loaded resource={why} what="the explanation">
      {(data) => <Decision decision={data} />}
    </Loaded>
  )
}

function ExplainForm({ agent, tool }: { readonly agent: string; readonly tool: string }) {
  const id = useId()
  const allAgents = useResource(isAdmin.value ? queries.agents : async () => [], 'agents')
  const agents = selectableAgents(allAgents.data?.map(({ name }) => name) ?? [])
  const tools = useResource(queries.tools({}), 'tools')
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    setQuery({ agent: String(form.get('agent') ?? '').trim(), tool: String(form.get('tool') ?? '').trim() })
  }
  return (
    <form class="filters" onSubmit={submit}>
      <label class="filter">
        <span>Agent</span>
        <input
          class="input"
          name="agent"
          list={`${id}-agents`}
          defaultValue={agent}
          required
          autocomplete="off"
          placeholder="researcher"
        />
      </label>
      <label class="filter why-tool">
        <span>Tool</span>
        <input
          class="input"
          name="tool"
          list={`${id}-tools`}
          defaultValue={tool}
          required
          autocomplete="off"
          placeholder="filesystem.write_file"
          data-search
        />
      </label>
      <Button kind="primary" type="submit">
        Explain
      </Button>
      <datalist id={`${id}-agents`}>
        {agents.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <datalist id={`${id}-tools`}>
        {tools.data?.tools.map(({ server, tool: name }) => (
          <option key={`${server}.${name}`} value={`${server}.${name}`} />
        ))}
      </datalist>
    </form>
  )
}

/** Shows a decision, the rule behind it, and all rules that were considered. */
function Decision({ decision }: { readonly decision: WhyView }) {
  const { agent, server, tool, allowed, rule, sentence, considered } = decision
  const title = (
    <>
      {agent} {allowed ? 'may' : 'may not'} use {server}.{tool}
    </>
  )
  return (
    <Card title={title} side={<StatusBadge status={allowed ? allowedStatus : deniedStatus} chip />}>
      <div class="stack">
        <p>{sentence}</p>
        <p>
          Decided by <code>{rule}</code>
        </p>
        <h3>Rules considered, in order</h3>
        <ol class="considered">
          {considered.map((step, index) => (
            <li key={index} data-decides={step.rule === rule || undefined}>
              <code>{step.rule}</code>
              <span>{step.text}</span>
            </li>
          ))}
        </ol>
        <CodeBlock text={`toolway why ${agent} ${server}.${tool}`} label="Equivalent command" />
      </div>
    </Card>
  )
}
