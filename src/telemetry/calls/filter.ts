import type { CallView } from './views.ts'

/** Which calls somebody wants to see; whatever is not said does not matter. */
export interface CallFilter {
  readonly agent?: string | undefined
  readonly principal?: string | undefined
  readonly server?: string | undefined
  readonly name?: string | undefined
  readonly operation?: string | undefined
  readonly outcome?: CallView['outcome'] | undefined
  /** Somewhere in its names, its id or its code; capitals do not count. */
  readonly text?: string | undefined
}

const exactly = ['agent', 'principal', 'server', 'name', 'operation', 'outcome'] as const

/** Asked about what is shown, so that nobody can find out by searching what is not. */
export function fits(view: CallView, filter: CallFilter): boolean {
  if (exactly.some((field) => filter[field] !== undefined && view[field] !== filter[field])) return false
  const text = filter.text?.trim().toLowerCase()
  return text === undefined || text === '' || textOf(view).includes(text)
}

const textOf = ({ id, agent, principal, operation, server, name, code }: CallView): string =>
  [`${server}.${name}`, agent, principal, operation, id, code ?? ''].join('\n').toLowerCase()
