import { randomUUID } from 'node:crypto'
import type { FunctionCall } from '../../core/chat.ts'
import { isSchemaObject as isObject } from '../constrain/schema.ts'
import { asFunctionCalls } from '../constrain/stages.ts'
import { repair } from '../repair/repair.ts'
import { createTold, type Told } from './chunks.ts'
import type { Delta, End } from './model.ts'
import type { Plan } from './plan.ts'

const newId = (): string => `call_${randomUUID().replaceAll('-', '')}`

/** What the objects of an answer tell, in our own words. */
export async function* deltasOf(objects: AsyncIterable<unknown>, plan: Plan): AsyncGenerator<Delta> {
  const told = createTold()
  const texts: string[] = []
  for await (const object of objects) {
    for (const piece of told.take(object)) {
      // Calls that are written as text can only be read when they are complete.
      if (plan.callsAsText && piece.kind === 'text') texts.push(piece.text)
      else yield piece
    }
  }
  const written = plan.callsAsText ? readCalls(texts.join(''), plan) : { text: '', calls: [] }
  if (written.text !== '') yield { kind: 'text', text: written.text }
  const calls = [...withoutHalf(told).map((call) => restored(call, plan)), ...written.calls]
  for (const call of calls) yield { kind: 'call', call }
  yield endOf(told, plan, written.calls.length > 0)
}

/**
 * The calls, but not one that was cut off before its arguments began: it would look like a call without any. Arguments
 * that were cut off show that themselves.
 */
function withoutHalf(told: Told): readonly FunctionCall[] {
  const calls = told.calls(newId)
  const isCut = told.reason === 'length' || !told.finished
  return isCut && calls.at(-1)?.function.arguments.trim() === '' ? calls.slice(0, -1) : calls
}

function endOf(told: Told, plan: Plan, hasCalls: boolean): End {
  return {
    kind: 'end',
    reason: hasCalls && told.reason !== 'length' ? 'calls' : told.reason,
    ...(told.usage && { usage: told.usage }),
    ...(plan.constraint && !plan.callsAsText && { form: plan.constraint }),
    restore: (value) => (plan.callsAsText ? value : plan.restore(value)),
  }
}

/** The calls in an answer to a server that was not offered any tools. Half a call is none. */
function readCalls(answer: string, plan: Plan): { readonly text: string; readonly calls: readonly FunctionCall[] } {
  const found = repair(answer, { accepts: (value) => isObject(value) && ('tool_calls' in value || 'content' in value) })
  if (!('value' in found) || !found.complete) return { text: answer, calls: [] }
  const value = plan.restore(found.value)
  if (!isObject(value)) return { text: answer, calls: [] }
  const named = Array.isArray(value.tool_calls)
    ? value.tool_calls.filter((call) => isObject(call) && typeof call.name === 'string')
    : []
  const text = typeof value.content === 'string' ? value.content : ''
  return { text, calls: asFunctionCalls({ tool_calls: named }, newId).tool_calls ?? [] }
}

/** A call of a strict tool without the nulls that strictness asked for. What is no JSON stays as it is. */
function restored(call: FunctionCall, plan: Plan): FunctionCall {
  const { name, arguments: text } = call.function
  try {
    const parsed: unknown = JSON.parse(text)
    const before = JSON.stringify(parsed)
    const after = JSON.stringify(plan.restore(parsed, name))
    // Where nothing was restored the text stays: it may hold numbers that a double cannot.
    return after === before ? call : { ...call, function: { name, arguments: after } }
  } catch {
    return call
  }
}
