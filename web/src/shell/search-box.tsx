import './search-box.css'
import { useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import type { SearchHit } from '../../../src/admin/contract.ts'
import { queries } from '../api/endpoints.ts'
import { useResource } from '../api/resource.ts'
import { BreakableName } from '../components/breakable-name.tsx'
import { Icon, type IconName } from '../components/icon.tsx'
import { LoadError } from '../components/states.tsx'
import { pluralize } from '../format/number.ts'
import { navigate } from '../routing/location.ts'
import { withQuery } from '../routing/query.ts'
import { pathTo } from '../routing/route.ts'
import { pageTitles, visiblePages } from './menu.tsx'

interface Option {
  readonly kind: 'page' | SearchHit['kind']
  readonly icon: IconName
  readonly name: string
  readonly detail: string
  readonly href: string
}

/** How long to wait after a letter before the gateway is asked, in milliseconds. */
const delayMs = 120

/** Jumps to any page, server, tool, agent or call that the user may see. Follows the ARIA pattern for comboboxes. */
export function SearchBox() {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const text = useSignal('')
  const asked = useSignal('')
  const active = useSignal(0)
  const found = useResource(
    async (signal) => (asked.value === '' ? [] : (await queries.search(asked.value)(signal)).hits),
    asked.value,
  )
  // The dialog opens before this code is loaded.
  useEffect(() => input.current?.focus(), [])
  useEffect(() => {
    const timer = setTimeout(() => {
      asked.value = text.value.trim()
    }, delayMs)
    return () => clearTimeout(timer)
  }, [text.value])

  // What was found for other words is not what the user is looking for now.
  const pending = text.value.trim() !== asked.value || found.loading
  const options = [...matchingPages(text.value), ...(pending ? [] : (found.data ?? []).map(toOption))]
  if (!pending) options.push(...unknownCall(asked.value, options))
  const current = Math.min(active.value, options.length - 1)

  const choose = (option: Option | undefined) => {
    if (!option) return
    // Close first: the focus cannot move to the new page while the dialog is open.
    input.current?.closest('dialog')?.close()
    navigate(option.href)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return
    if (event.key === 'Enter') choose(options[current])
    else if (event.key === 'ArrowDown') active.value = (current + 1) % Math.max(1, options.length)
    else if (event.key === 'ArrowUp') active.value = current <= 0 ? options.length - 1 : current - 1
    else return
    event.preventDefault()
  }
  return (
    <>
      <input
        ref={input}
        class="input"
        type="text"
        role="combobox"
        aria-label="Search"
        aria-autocomplete="list"
        aria-expanded={options.length > 0}
        aria-controls={`${id}-options`}
        aria-activedescendant={options[current] && `${id}-${current}`}
        placeholder="Page, server, tool, agent or call ID"
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value
          active.value = 0
        }}
        onKeyDown={onKeyDown}
      />
      {found.error && <LoadError error={found.error} what="the results" retry={found.reload} />}
      <div class="search-options" role="listbox" id={`${id}-options`} aria-label="Results" tabIndex={-1}>
        {options.map((option, index) => (
          <OptionView
            key={option.href}
            id={`${id}-${index}`}
            option={option}
            selected={index === current}
            onChoose={() => choose(option)}
          />
        ))}
      </div>
      <p class="quiet small" role="status">
        {!pending && !found.error && (options.length === 0 ? 'Nothing found.' : pluralize(options.length, 'result'))}
      </p>
    </>
  )
}

interface OptionViewProps {
  readonly id: string
  readonly option: Option
  readonly selected: boolean
  onChoose(): void
}

function OptionView({ id, option: { kind, icon, name, detail }, selected, onChoose }: OptionViewProps) {
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (selected) element.current?.scrollIntoView({ block: 'nearest' })
  }, [selected])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the text field handles the keys
    <div ref={element} id={id} role="option" tabIndex={-1} aria-selected={selected} onClick={onChoose}>
      <Icon name={icon} />
      <span class="search-name">
        <BreakableName name={name} />
        {detail !== '' && <span class="quiet"> {detail}</span>}
      </span>
      <span class="quiet small">{kind}</span>
    </div>
  )
}

function matchingPages(text: string): readonly Option[] {
  const wanted = text.trim().toLowerCase()
  return visiblePages()
    .filter((page) => pageTitles[page].toLowerCase().includes(wanted))
    .map((page) => ({ kind: 'page', icon: page, name: pageTitles[page], detail: '', href: pathTo(page) }))
}

const icons = { server: 'servers', tool: 'tools', agent: 'policy', call: 'calls' } as const

const toOption = ({ kind, name, detail }: SearchHit): Option => ({
  ...{ kind, name, detail, icon: icons[kind] },
  // Agents have no page of their own; the list of agents leads to their calls, too.
  href:
    kind === 'agent' ? withQuery(pathTo('calls'), { agent: name }) : pathTo(icons[kind] as 'servers' | 'tools', name),
})

const callId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A call that is too old for the search may still be in the history or the audit log. */
const unknownCall = (text: string, options: readonly Option[]): readonly Option[] =>
  callId.test(text) && !options.some(({ kind }) => kind === 'call')
    ? [toOption({ kind: 'call', name: text.toLowerCase(), detail: 'look it up' })]
    : []
