import { useId } from 'preact/hooks'
import { read } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin, ownAgents } from '../../api/session.ts'
import { setQuery } from '../../routing/location.ts'

export function WhyForm({ agent, tool }: { readonly agent: string; readonly tool: string }) {
  const id = useId()
  const known = useResource(isAdmin.value ? read.agents : async () => [], 'agents')
  const agents = ownAgents(known.data?.map(({ name }) => name) ?? [])
  const tools = useResource(read.tools({}), 'tools')
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
