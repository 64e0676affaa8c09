import { isObject } from '../../core/schema-keywords.ts'
import { isSpelling } from './names.ts'

/** Where guarded values stand in a call's arguments: `path`, `paths[]`, `options.path`, `items[].url`. */
export interface Selector {
  readonly text: string
  readonly steps: readonly Step[]
}

/** The name of a member, or every item of a list. */
export type Step = { readonly member: string } | 'items'

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

/**
 * Finds what a selector stands for. Absent arguments are left to the tool's schema; null is a value like any other, and
 * one that servers take for "all" or for their own default.
 */
export function select(selector: Selector, args: Readonly<Record<string, unknown>>): readonly Selected[] | Mismatch {
  let found: readonly Selected[] = [{ at: '', value: args }]
  for (const step of selector.steps) {
    const next: Selected[] = []
    for (const { at, value } of found) {
      if (step === 'items') {
        if (!Array.isArray(value)) return { at, expected: 'a list' }
        for (const [index, item] of value.entries()) push(next, `${at}[${index}]`, item)
      } else {
        if (!isObject(value)) return { at, expected: 'an object' }
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

const push = (list: Selected[], at: string, value: unknown) => {
  if (value !== undefined) list.push({ at, value })
}
