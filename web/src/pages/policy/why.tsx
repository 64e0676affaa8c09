import { useId } from 'preact/hooks'
import type { WhyView } from '../../../../src/serve/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin, selectableAgents } from '../../api/session.ts'
import { Card } from '../../parts/page.tsx'
import { Loaded } from '../../parts/states.tsx'
import { query, setQuery } from '../../routing/location.ts'
import './verdict.css'
import { Code } from '../../parts/code.tsx'
import { allowedLook, deniedLook } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'

/** The agent and the tool are in the address, so that an explanation can be shared. */
export function Why() {
  const agent = query.value.get('agent') ?? ''
  const tool = query.value.get('tool') ?? ''
  return (
    <>
      <Card title="Explain a decision">
        <WhyForm key={`${agent} ${tool}`} agent={agent} tool={tool} />
      </Card>
      {agent !== '' && tool !== '' && <Answer key={`${agent} ${tool}`} agent={agent} tool={tool} />}
    </>
  )
}

function Answer({ agent, tool }: { readonly agent: string; readonly tool: string }) {
  const why = useResource<WhyView>(queries.why(agent, tool), `${agent} ${tool}`)
  return (
    <Loaded of={why} what="the explanation">
      {(data) => <Verdict of={data} />}
    </Loaded>
  )
}

function WhyForm({ agent, tool }: { readonly agent: string; readonly tool: string }) {
  const id = useId()
  const known = useResource(isAdmin.value ? queries.agents : async () => [], 'agents')
  const agents = selectableAgents(known.data?.map(({ name }) => name) ?? [])
  const tools = useResource(queries.tools({}), 'tools')
  const ask = (event: SubmitEvent) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    setQuery({ agent: String(form.get('agent') ?? '').trim(), tool: String(form.get('tool') ?? '').trim() })
  }
  return (
    <form class="filters" onSubmit={ask}>
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
      <button type="submit" class="button primary">
        Explain
      </button>
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

/** A decision, the rule that made it, and all rules considered. */
function Verdict({ of }: { readonly of: WhyView }) {
  const { agent, server, tool, allowed, rule, sentence, considered } = of
  const verdict = (
    <>
      {agent} {allowed ? 'may' : 'may not'} use {server}.{tool}
    </>
  )
  return (
    <Card title={verdict} side={<Mark look={allowed ? allowedLook : deniedLook} chip />}>
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
        <Code text={`toolway why ${agent} ${server}.${tool}`} label="Equivalent command" />
      </div>
    </Card>
  )
}
