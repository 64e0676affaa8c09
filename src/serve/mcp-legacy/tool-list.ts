import { applicators, assertions, isListOfItems, isListOfNames } from '../../core/schema-keywords.ts'
import { resolveReference } from '../../json/json-pointer.ts'
import { elements, members } from '../../json/json-text.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { memoizeByObject } from '../../lib/memoize.ts'
import { isObjectSchema } from '../../wire/convert-result.ts'

/**
 * Removes output schemas that legacy clients cannot use: one such schema makes a client reject the whole list. Memoized,
 * because a page is the same object until it changes.
 */
export const legacyToolList = memoizeByObject(withKnownOutputs)

function withKnownOutputs(list: Buffer): Buffer {
  if (!list.includes('"outputSchema"')) return list
  const tools = elements(list) ?? []
  const readable = tools.map(withKnownOutput)
  return readable.every((tool, at) => tool === tools[at]) ? list : Buffer.from(`[${readable.join()}]`)
}

function withKnownOutput(tool: Buffer): Buffer {
  const output = members(tool)?.get('outputSchema')
  if (output === undefined || isReadableOutput(jsonValue(output.toString()))) return tool
  const { outputSchema: _, ...rest } = asRecord(jsonValue(tool.toString()))
  return Buffer.from(JSON.stringify(rest))
}

const isReadableOutput = (output: unknown): boolean => isObjectSchema(output) && isCompilable(output)

const schemaTypes = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object']
const referenceKeywords = /"\$(?:id|anchor|dynamicAnchor|dynamicRef)":/
/** Limits for an output schema. Larger schemas are removed. */
const maxOutputSubschemas = 1000
const maxOutputDepth = 64
const maxOutputPattern = 2048

/** Whether a schema compiles: all keywords and patterns are valid, and references point inside the schema. */
export function isCompilable(root: unknown): boolean {
  let subschemas = 0
  const { $id = '', ...rest } = isRecord(root) ? root : {}
  if (typeof $id !== 'string' || $id.includes('#') || referenceKeywords.test(JSON.stringify(rest))) return false
  return isSound(root, 0)

  function isSound(schema: unknown, depth: number): boolean {
    if (typeof schema === 'boolean') return true
    if (!isRecord(schema) || depth > maxOutputDepth || ++subschemas > maxOutputSubschemas) return false
    if (schema.nullable !== undefined && schema.type === undefined) return false
    return Object.entries(schema).every(([keyword, value]) =>
      Object.hasOwn(applicators, keyword) ? holdsSound(keyword, value, depth + 1) : isRight(keyword, value),
    )
  }

  function holdsSound(keyword: string, value: unknown, depth: number): boolean {
    const kind = applicators[keyword]
    if (isListOfItems(keyword, value) || (kind === 'list' && Array.isArray(value)))
      return value.length > 0 && value.every((item) => isSound(item, depth))
    if (kind === 'one') return isSound(value, depth)
    if (kind === 'list' || !isRecord(value)) return false
    return Object.entries(value).every(
      ([name, item]) =>
        (keyword !== 'patternProperties' || isValidPattern(name)) &&
        (isListOfNames(keyword, item) || isSound(item, depth)),
    )
  }

  function isRight(keyword: string, value: unknown): boolean {
    if (Object.hasOwn(assertions, keyword) && !assertions[keyword]?.(value)) return false
    if (keyword === 'type') return [value].flat().every((type) => schemaTypes.includes(type as string))
    if (keyword === 'enum') return (value as readonly unknown[]).length > 0
    if (keyword === 'pattern') return isValidPattern(value as string)
    if (keyword === 'id') return false
    return keyword !== '$ref' || leadsInside(root, value as string)
  }
}

function isValidPattern(text: string): boolean {
  try {
    return text.length <= maxOutputPattern && new RegExp(text, 'u') !== undefined
  } catch {
    return false
  }
}

function leadsInside(root: unknown, reference: string): boolean {
  const place = reference.includes('%') ? undefined : resolveReference(root, reference)
  return isRecord(place) || typeof place === 'boolean'
}
