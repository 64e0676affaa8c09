import { useSignal } from '@preact/signals'
import type { TargetedKeyboardEvent } from 'preact'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin, selectableAgents } from '../../api/session.ts'
import { Icon } from '../../components/icon.tsx'
import { sendMessage, stop, turns } from './conversation.ts'

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
  const selectedAgent = useSignal<string | undefined>(undefined)
  const agent = selectedAgent.value ?? agents[0] ?? ''
  const running = turns.value.at(-1)?.state === 'running'

  const send = () => {
    const message = text.value.trim()
    if (message === '' || running) return
    text.value = ''
    void sendMessage(message, { model: model.value, mode: mode.value || undefined, agent })
  }
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => {
    // While an input method is composing text, Enter only confirms the composition.
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
        onKeyDown={onKeyDown}
        data-search
      />
      <div class="filters">
        <SelectField label="Model" value={model.value} options={models} onChange={(next) => (model.value = next)} />
        <SelectField label="Mode" value={mode.value} options={modes} onChange={(next) => (mode.value = next)} />
        <SelectField
          label="Act as agent"
          value={agent}
          options={agents}
          onChange={(next) => (selectedAgent.value = next)}
        />
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

interface SelectFieldProps {
  readonly label: string
  readonly value: string
  readonly options: readonly (string | readonly [value: string, text: string])[]
  onChange(value: string): void
}

function SelectField({ label, value, options, onChange }: SelectFieldProps) {
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
