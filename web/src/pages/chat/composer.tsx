import { useSignal } from '@preact/signals'
import type { TargetedKeyboardEvent } from 'preact'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin, selectableAgents } from '../../api/session.ts'
import { Icon } from '../../parts/icon.tsx'
import { ask, stop, turns } from './talk.ts'

const modes = [
  ['', 'as configured'],
  ['staged', 'staged'],
  ['agent', 'agent'],
] as const

export function Composer({ models }: { readonly models: readonly string[] }) {
  const known = useResource(isAdmin.value ? queries.agents : async () => [], 'agents')
  const agents = selectableAgents(known.data?.map(({ name }) => name) ?? [])
  const text = useSignal('')
  const model = useSignal(models[0] ?? '')
  const mode = useSignal('')
  const chosen = useSignal<string | undefined>(undefined)
  const agent = chosen.value ?? agents[0] ?? ''
  const running = turns.value.at(-1)?.state === 'running'

  const send = () => {
    const asked = text.value.trim()
    if (asked === '' || running) return
    text.value = ''
    void ask(asked, { model: model.value, mode: mode.value || undefined, agent })
  }
  const pressed = (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => {
    // Enter also confirms the composition of an input method.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    send()
  }
  return (
    <form
      class="card composer"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <textarea
        class="input"
        aria-label="Message"
        placeholder="Enter to send, Shift+Enter for a new line"
        rows={3}
        value={text.value}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        onKeyDown={pressed}
        data-search
      />
      <div class="filters">
        <Pick label="Model" value={model.value} options={models} onChange={(next) => (model.value = next)} />
        <Pick label="Mode" value={mode.value} options={modes} onChange={(next) => (mode.value = next)} />
        <Pick label="Act as agent" value={agent} options={agents} onChange={(next) => (chosen.value = next)} />
        {running ? (
          <button key="stop" type="button" class="button" onClick={stop}>
            <Icon name="close" size={14} /> Stop
          </button>
        ) : (
          <button key="send" type="submit" class="button primary" aria-disabled={text.value.trim() === ''}>
            <Icon name="up" size={14} /> Send
          </button>
        )}
      </div>
    </form>
  )
}

interface PickProps {
  readonly label: string
  readonly value: string
  readonly options: readonly (string | readonly [value: string, text: string])[]
  onChange(value: string): void
}

function Pick({ label, value, options, onChange }: PickProps) {
  const pairs = options.map((option) => (typeof option === 'string' ? ([option, option] as const) : option))
  return (
    <label class="filter">
      <span>{label}</span>
      <select class="input" value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {pairs.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}
