/** Where guarded values stand in a call's arguments: `path`, `paths[]`, `options.path`, `items[].url`. */
export interface Selector {
  readonly text: string
  readonly steps: readonly Step[]
}

/** The name of a member, or every item of a list. */
type Step = { readonly member: string } | 'items'

/** A value that a selector led to, and its place as people write it: `items[2].url`. */
export interface Selected {
  readonly at: string
  readonly value: unknown
}

/** Something on the way was not what the selector expects; whoever sent it may be hiding a value from the guard. */
export interface Mismatch {
  readonly at: string
  readonly expected: 'an object' | 'a list'
}

/** Reads a selector once; `undefined` if it is none. */
export function parseSelector(text: string): Selector | undefined {
  const steps: Step[] = []
  for (const part of text.split('.')) {
    let member = part
    let lists = 0
    while (member.endsWith('[]')) {
      member = member.slice(0, -2)
      lists++
    }
    if (member === '' || member.includes('[') || member.includes(']')) return undefined
    steps.push({ member }, ...Array<Step>(lists).fill('items'))
  }
  return { text, steps }
}

/** Finds what a selector stands for. What is absent is none of its business: the tool's schema decides about that. */
export function select(selector: Selector, args: Readonly<Record<string, unknown>>): readonly Selected[] | Mismatch {
  let found: readonly Selected[] = [{ at: '', value: args }]
  for (const step of selector.steps) {
    const next: Selected[] = []
    for (const { at, value } of found) {
      if (step === 'items') {
        if (!Array.isArray(value)) return { at, expected: 'a list' }
        for (const [index, item] of value.entries()) push(next, `${at}[${index}]`, item)
      } else {
        if (typeof value !== 'object' || value === null || Array.isArray(value)) return { at, expected: 'an object' }
        for (const [name, member] of Object.entries(value)) {
          if (isSpelling(name, step.member)) push(next, at === '' ? name : `${at}.${name}`, member)
        }
      }
    }
    if (next.length === 0) return next
    found = next
  }
  return found
}

/** Some parsers, Go's among them, leave case aside: what goes by another spelling of a guarded name is guarded, too. */
const isSpelling = (name: string, member: string): boolean =>
  name === member || (name.length === member.length && folded(name) === folded(member))

/** Twice, because two signs outside ASCII are letters of it in one direction only. */
const folded = (name: string): string => name.toUpperCase().toLowerCase()

const push = (list: Selected[], at: string, value: unknown) => {
  if (value !== undefined && value !== null) list.push({ at, value })
}
