import type { FunctionCall } from '../core/chat.ts'
import { ToolwayError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import { strings } from './constrain/schema.ts'
import type { Offer, Offered } from './offer.ts'
import { readObject } from './read-object.ts'
import type { ValidateArguments } from './turn.ts'

type Arguments = Readonly<Record<string, unknown>>

/** A call of a model that has been looked at: one that can be made, or what is wrong with it. */
export interface ReadCall {
  /** With arguments that are JSON, whatever the model wrote: some servers read them again in the next request. */
  readonly call: FunctionCall
  readonly tool?: Offered
  readonly arguments: Arguments
  /** The same as it is sent: in the model's own digits, where nothing had to be repaired or added. */
  readonly json: Json<Arguments>
  /** In a sentence for the model. */
  readonly problem?: string
}

/** More in one answer are more than anybody can mean. */
const maxCalls = 32

/**
 * Looks at the calls of one answer: whether there are such tools, and whether the arguments fit them. `ended` says that
 * the answer was not cut off.
 */
export function readCalls(
  calls: readonly FunctionCall[],
  offer: Offer,
  validate: ValidateArguments,
  ended = false,
): Promise<readonly ReadCall[]> {
  return Promise.all(
    calls.map(async (call, index) => {
      const read = await readCall(call, offer, validate, ended)
      const tooMany = `Too many calls at once: only the first ${maxCalls} are made.`
      return index < maxCalls ? read : { ...read, problem: tooMany }
    }),
  )
}

async function readCall(
  call: FunctionCall,
  offer: Offer,
  validate: ValidateArguments,
  ended: boolean,
): Promise<ReadCall> {
  const { name } = call.function
  const tool = offer.find(name)
  const given = argumentsIn(call.function.arguments, tool, ended)
  const args = 'value' in given ? { ...given.value, ...tool?.preset } : {}
  const written = 'value' in given ? asWritten(call.function.arguments, given.value) : Json.of({})
  const read = (problem?: string): ReadCall => ({
    call: {
      ...call,
      function: {
        name: tool?.callable.name ?? name,
        arguments: written.bytes.toString(),
      },
    },
    ...(tool && { tool }),
    arguments: args,
    json: tool?.preset === undefined ? written : Json.of(args),
    ...(problem !== undefined && { problem }),
  })
  if (!tool) return read(offer.missing(name))
  if (!('value' in given))
    return read(`What was given as the arguments of ${name} ${given.problem}. Write one JSON object.`)
  return read(await problemWith(tool, args, validate))
}

/** Keeps the text of the model where it means just this value: numbers beyond 2^53 would be rounded otherwise. */
function asWritten(text: string, value: Arguments): Json<Arguments> {
  try {
    const written = Json.parse(text) as Json<Arguments>
    if (JSON.stringify(written.value) === JSON.stringify(value)) return written
  } catch {
    // It had to be repaired.
  }
  return Json.of(value)
}

/** The object that a model meant by its arguments. */
function argumentsIn(text: string, tool: Offered | undefined, ended: boolean): ReturnType<typeof readObject> {
  if (text.trim() === '' || text.trim() === 'null') return { value: {} }
  const required = strings(tool?.callable.parameters.required)
  return readObject(text, { accepts: (value) => required.every((name) => name in value), ended })
}

async function problemWith(
  { served, callable }: Offered,
  args: Arguments,
  validate: ValidateArguments,
): Promise<string | undefined> {
  try {
    await validate(served?.definition.inputSchema ?? callable.parameters, args, callable.name)
    return undefined
  } catch (error) {
    const told = error instanceof ToolwayError && (error.code === 'INVALID_ARGUMENTS' || error.code === 'QUARANTINED')
    if (told) return error.message
    throw error
  }
}
