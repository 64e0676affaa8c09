import { elements, members } from '../core/json-text/scan.ts'
import { isObjectSchema } from '../wire/convert-result.ts'
import { isCompilable } from './compilable.ts'

/** Pages are made once for all who see them. */
const known = new WeakMap<Buffer, Buffer>()

/**
 * A list of tools as clients of the revisions with sessions can read it: they know outputs that are objects, compile
 * what is promised of each, and lose the whole list by one that they cannot.
 */
export function legacyTools(list: Buffer): Buffer {
  const made = known.get(list) ?? withKnownOutputs(list)
  known.set(list, made)
  return made
}

function withKnownOutputs(list: Buffer): Buffer {
  if (!list.includes('"outputSchema"')) return list
  const tools = elements(list) ?? []
  const readable = tools.map(withKnownOutput)
  return readable.every((tool, at) => tool === tools[at]) ? list : Buffer.from(`[${readable.join()}]`)
}

function withKnownOutput(tool: Buffer): Buffer {
  const output = members(tool)?.get('outputSchema')
  if (output === undefined || isReadable(JSON.parse(output.toString()))) return tool
  const { outputSchema: _, ...rest } = JSON.parse(tool.toString())
  return Buffer.from(JSON.stringify(rest))
}

const isReadable = (output: unknown): boolean => isObjectSchema(output) && isCompilable(output)
