import type { Definition } from '../../core/entry.ts'
import { isObject } from '../../core/schema-keywords.ts'
import { declares, schemasAt } from '../schema-members.ts'
import type { GuardConfig } from './guard.ts'
import { isSpelling, suggests } from './names.ts'
import { type Selected, type Selector, type Step, select } from './selector.ts'

type Fields = Readonly<Record<string, unknown>>

/** An object that guarded members are in, and the selected members of it. */
interface Parent {
  readonly selector: Selector
  readonly members: readonly string[]
}

/**
 * Finds arguments beside the guarded ones that the definition does not declare and whose names suggest a value of this
 * kind: servers accept aliases (`file` for `path`) that their schemas do not mention. Where a schema forbids additional
 * properties, validation has already refused them.
 */
export function undeclaredArguments(
  kind: GuardConfig['kind'],
  selectors: readonly Selector[],
): (args: Fields, definition: Definition | undefined) => readonly Selected[] {
  const parents = parentsOf(selectors)
  const suggestsKind = suggests[kind]
  return (args, definition) => {
    const found: Selected[] = []
    for (const { selector, members } of parents) {
      const objects = selector.steps.length === 0 ? [{ at: '', value: args }] : select(selector, args)
      // The selectors of the guard itself have refused it.
      if ('expected' in objects) continue
      for (const { at, value } of objects) {
        if (!isObject(value)) continue
        for (const name of Object.keys(value)) {
          if (!suggestsKind(name) || members.some((member) => isSpelling(name, member))) continue
          if (!isDeclared(definition, selector.steps, name)) {
            found.push({ at: at === '' ? name : `${at}.${name}`, value: value[name] })
          }
        }
      }
    }
    return found
  }
}

/** The objects that selectors lead through to their last member; the arguments themselves always among them. */
function parentsOf(selectors: readonly Selector[]): readonly Parent[] {
  const parents = new Map<string, { steps: readonly Step[]; members: string[] }>([['[]', { steps: [], members: [] }]])
  for (const { steps } of selectors) {
    for (const [index, step] of steps.entries()) {
      if (step === 'items') continue
      const before = steps.slice(0, index)
      const key = JSON.stringify(before)
      const parent = parents.get(key) ?? { steps: before, members: [] }
      parent.members.push(step.member)
      parents.set(key, parent)
    }
  }
  return [...parents.values()].map(({ steps, members }) => ({ selector: { text: '', steps }, members }))
}

/** Tools declare arguments by a schema, prompts by a list. */
function isDeclared(definition: Definition | undefined, steps: readonly Step[], name: string): boolean {
  if (definition === undefined) return false
  if (Array.isArray(definition.arguments)) {
    return definition.arguments.some((argument) => isObject(argument) && argument.name === name)
  }
  const root = definition.inputSchema
  let schemas: readonly unknown[] = [root]
  for (const step of steps) schemas = schemasAt(schemas, step === 'items' ? undefined : step.member, root)
  return declares(schemas, name, root)
}
