import { isAppOnly, pageOf } from '../../core/apps.ts'
import type { Call, Handler, Interceptor } from '../../core/call.ts'
import { type Content, type Result, type ResultBody, resultOf } from '../../core/result.ts'
import { metaSource } from '../../core/source.ts'
import type { ResultStore } from '../../core/stores.ts'
import { charactersPerToken } from '../../core/tokens.ts'
import { Json } from '../../json/json.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { durationText } from '../../lib/duration.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { compactTable } from './compact.ts'
import { cutJson, cutText, headAndTail, type Missing, sharedRoom } from './cut.ts'

/** The limits for results, in tokens (W7). The pipeline reads them before it adds the step, so calls without a limit cost nothing. */
export interface ResultLimits {
  /** Whether this step concerns all calls: tools have limits of their own, or tables are to be compact. */
  readonly isForAll: boolean
  readonly agents: ReadonlyMap<string, number>
  /** The limit of all other agents. */
  readonly maxTokens: number | undefined
  /** The limits of clients by name, as far as they are known; for calls without a configured limit. */
  readonly clients: ReadonlyMap<string | undefined, number>
  ofClient(name: string | undefined): number
  /** The limit for a call; 0 if there is none. */
  of(call: Pick<Call, 'caller' | 'entry'>): number
}

export interface ResultStepOptions {
  readonly limits: ResultLimits
  readonly store: ResultStore
  readonly keepMs: number
  readonly compact: boolean
  /** Whether structured content is valid for a tool's output schema. */
  accepts(schema: Readonly<Record<string, unknown>>, value: unknown): Promise<boolean>
}

const resultKey = 'dev.toolway/result'
/** For the sentence and the link. */
const cutNoticeCharacters = 400
const minRoom = 200
/** More text blocks than this are not cut one by one. */
const maxCutBlocks = 8
/** The first revision with links in results. */
const linkRevision = '2025-06-18'

/** Cuts results that are longer than their limit, and keeps the whole ones (W7). */
export const limitResults =
  (options: ResultStepOptions): Interceptor =>
  async (call, next: Handler) => {
    const result = await next(call)
    const { kind, server, definition } = call.entry
    // The page of an app needs whole results, and reads them itself.
    const isExempt =
      kind !== 'tool' || server === metaSource || pageOf(definition) !== undefined || isAppOnly(definition)
    if (isExempt || call.resultShare === undefined) return result
    const asTable = options.compact ? withTables(result) : undefined
    const maxTokens = Math.floor(options.limits.of(call) * call.resultShare)
    const isLong = maxTokens > 0 && result.body.bytes.length > maxTokens * charactersPerToken
    return (isLong ? await cutResult(call, result, maxTokens, { ...options, asTable }) : undefined) ?? asTable ?? result
  }

/** A result with its JSON arrays of uniform objects as tables; undefined if it has none. */
function withTables(result: Result): Result | undefined {
  if (!result.body.bytes.includes('{') || isUnfinished(result.body.value)) return undefined
  let compact = false
  const content = textsOf(result.body.exact).map((block) => {
    const table = typeof block.text === 'string' ? compactTable(block.text) : undefined
    compact ||= table !== undefined
    return table === undefined ? block : { ...block, text: table }
  })
  return compact ? replaceBody(result, { content }, { compact }) : undefined
}

interface CutOptions extends ResultStepOptions {
  readonly asTable: Result | undefined
}

/** A part of the result; undefined if the result is not too long, or its output schema does not allow a part. */
async function cutResult(call: Call, result: Result, maxTokens: number, options: CutOptions) {
  const source = (options.asTable ?? result).body.exact
  if (isUnfinished(source)) return undefined
  const content = textsOf(source)
  const structured = source.structuredContent === undefined ? undefined : result.body.member('structuredContent')?.bytes
  const json = structured?.toString('utf8') ?? ''
  const texts = content.filter(isTextBlock).map(({ text }) => text)
  const textLength = texts.reduce((sum, { length }) => sum + length, 0)
  const characters = textLength + json.length
  if (characters <= maxTokens * charactersPerToken) return undefined
  const { outputSchema } = call.entry.definition
  // Clients refuse a result without structured content if they know an output schema. They do not know those of nested calls.
  const schema =
    call.parent === undefined && structured && !result.isError && isRecord(outputSchema) ? outputSchema : undefined
  const room = Math.max(minRoom, maxTokens * charactersPerToken - cutNoticeCharacters)
  const missing: Missing = { characters: 0, ofCharacters: characters }
  const textRoom = schema ? Math.max(Math.floor(room / 2), room - json.length) : room
  const kept = cutContent(content, textRoom, missing)
  // What the text lacks is counted once.
  const cut = { missing: textLength > 0 ? { ...missing } : missing, marks: false }
  const part = schema && structured ? cutJson(structured, room - textLengthOf(kept), cut) : undefined
  const parsed = part === undefined ? undefined : Json.raw(Buffer.from(part))
  if (schema && parsed && !(await options.accepts(schema, parsed.value))) return undefined
  missing.characters = characters - textLengthOf(kept) - (part?.length ?? 0)
  const told = {
    tokens: Math.ceil(characters / charactersPerToken),
    maxTokens,
    ...(options.asTable && { compact: true }),
  }
  const changes = { content: kept, structuredContent: parsed?.exact }
  // The text has the same content: nothing is missing.
  if (!schema && textLength <= room && saysSameJson(texts, json)) return replaceBody(result, changes, told)
  const { server, name } = call.entry
  await options.store.keep(call.caller, call.id, { server, tool: name, bytes: result.body.bytes }, options.keepMs)
  return replaceBody(
    result,
    { ...changes, content: [...kept, ...cutNotice(call, missing, options.keepMs)] },
    { handle: call.id, ...told, missing },
  )
}

/** Whether the call goes on: its client is asked something, or a task was created. */
const isUnfinished = ({ resultType }: ResultBody): boolean => resultType !== undefined && resultType !== 'complete'

const textsOf = ({ content }: ResultBody): readonly Content[] => (Array.isArray(content) ? content : [])
type TextBlock = Content & { readonly text: string }
const isTextBlock = (block: Content): block is TextBlock => block.type === 'text' && typeof block.text === 'string'
const textLengthOf = (content: readonly Content[]): number =>
  content.reduce((sum, block) => sum + (isTextBlock(block) ? block.text.length : 0), 0)

function saysSameJson([text, ...others]: readonly string[], json: string): boolean {
  if (text === undefined || others.length > 0 || json === '') return false
  try {
    return JSON.stringify(jsonValue(text)) === JSON.stringify(jsonValue(json))
  } catch {
    return false
  }
}

/** Cuts the text blocks to about `room` characters together. Other blocks stay. */
function cutContent(content: readonly Content[], room: number, missing: Missing): readonly Content[] {
  const sizes = content.map((block) => (isTextBlock(block) ? block.text.length : 0))
  const count = sizes.filter((size) => size > 0).length
  const { head, tail } = count > maxCutBlocks ? headAndTail(sizes, room) : { head: content.length, tail: 0 }
  const most = sharedRoom([...sizes.slice(0, head), ...sizes.slice(content.length - tail)], room)
  const left = content.slice(head, content.length - tail).filter(isTextBlock).length
  const mark: Content = { type: 'text', text: `… ${left} of ${count} text blocks left out here …` }
  if (left > 0) Object.assign(missing, { items: left, ofItems: count })
  return content.flatMap((block, index): readonly Content[] => {
    if (!isTextBlock(block)) return [block]
    if (index >= head && index < content.length - tail) return index === head ? [mark] : []
    return [{ ...block, text: cutText(block.text, most, missing) }]
  })
}

/** What is missing and how to read it, for the model, and a link for clients that know links. */
function cutNotice(
  { id, peer }: Call,
  { characters, ofCharacters, ...parts }: Missing,
  keepMs: number,
): readonly Content[] {
  const uri = resultUri(id)
  const counted = Object.entries({ lines: [parts.lines, parts.ofLines], items: [parts.items, parts.ofItems] })
  const others = counted.flatMap(([what, [left, all]]) => (left ? `, ${left} of ${all} ${what}` : []))
  const sentence =
    `This result was cut: ${characters} of ${ofCharacters} characters${others.join('')} are missing. ` +
    `To read them within ${durationText(keepMs)}, call read_result with handle "${id}" and offset, pattern or path, or read ${uri}.`
  const revision = peer.request?.revision
  const hasLinks = revision === undefined || revision >= linkRevision
  const link = { type: 'resource_link', uri, name: `result-${id}`, title: 'The whole result' }
  return [{ type: 'text', text: sentence }, ...(hasLinks ? [link] : [])]
}

const resultUri = (handle: string): string => `toolway://results/${handle}`

function replaceBody({ plain: _, ...result }: Result, changes: Partial<ResultBody>, told: object): Result {
  const { exact } = result.body
  const _meta = { ...asRecord(exact._meta), [resultKey]: told }
  // Without members that are undefined.
  return { ...result, body: Json.raw(resultOf({ ...exact, ...changes, _meta }).body.bytes) }
}
