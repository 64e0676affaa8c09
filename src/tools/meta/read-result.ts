import { setImmediate } from 'node:timers/promises'
import * as z from 'zod'
import type { Call, Caller } from '../../core/call.ts'
import { refusalOf } from '../../core/decision.ts'
import type { Entry } from '../../core/entry.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import { type Result, type ResultBody, resultOf } from '../../core/result.ts'
import { metaSource } from '../../core/source.ts'
import type { KeptResult } from '../../core/stores.ts'
import { charactersPerToken } from '../../core/tokens.ts'
import { bytesAt, pathSteps } from '../../json/json-path.ts'
import { isJson, members } from '../../json/json-text.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { agentId, type MetaToolsOptions, type ResultReader } from './shared.ts'

type ReadResultOptions = Pick<MetaToolsOptions, 'access' | 'asAgent'> & { readonly results: ResultReader }

const defaultTokens = 20_000
/** For the sentence that says what follows. */
const pageNoteCharacters = 200
/** Lines are searched up to here: each takes time in proportion to its length and to that of the pattern. */
const maxSearched = 16 * 1024
const maxBusyMs = 10

const readResultInput = z.object({
  agent_id: agentId,
  handle: z.string().max(200).describe('The handle from the cut result.'),
  offset: z.int().min(0).default(0).describe('The first character to return.'),
  limit: z.int().min(1).optional().describe('Maximum characters; fewer if the result limit is lower.'),
  pattern: z.string().max(1000).optional().describe('Only lines that match this regular expression (RE2).'),
  path: z.string().max(1000).optional().describe('Only the value at this path: $.items[0].name or /items/0/name.'),
})

/** Returns parts of a result that was cut (W7). */
export const readResult = (options: ReadResultOptions): Tool =>
  defineTool({
    name: 'read_result',
    title: 'Read the rest of a result',
    description:
      'Returns the rest of a result that was cut: characters from offset, the lines that match pattern, or the JSON ' +
      'value at path. offset and limit also apply to what pattern and path select.',
    input: readResultInput,
    readOnly: true,
    async run({ agent_id, handle, offset, limit, pattern, path }, { call, signal }) {
      const caller = options.asAgent(call, agent_id)
      const { kept, entry } = await findResult(options, caller, handle, call)
      const whole = keptTexts(kept)
      const selected = path === undefined ? whole.texts.join('\n') : jsonTextAt(whole, path)
      const found = pattern === undefined ? undefined : await searchLines(selected, pattern, options.results, signal)
      const text = found?.lines.join('\n') ?? selected
      const tokens = options.results.maxTokens(caller, entry) || defaultTokens
      const room = Math.max(charactersPerToken, tokens * charactersPerToken - pageNoteCharacters)
      const start = afterCharacter(text, Math.min(offset, text.length))
      const end = Math.max(start, afterCharacter(text, Math.min(text.length, start + Math.min(limit ?? room, room))))
      const notes = found === undefined ? [] : [`${found.lines.length} of ${found.of} lines match.`]
      if (start > 0 || end < text.length) notes.push(`Characters ${start} to ${end} of ${text.length}.`)
      if (end < text.length) notes.push(`The next offset is ${end}.`)
      const part = { type: 'text', text: text.slice(start, end) }
      return resultOf({
        content: notes.length === 0 ? [part] : [part, { type: 'text', text: notes.join(' ') }],
        _meta: { 'dev.toolway/result': { handle, offset: start, end, characters: text.length } },
      })
    },
  })

const uriPrefix = 'toolway://results/'

/** Whole results as resources. */
export const resultTemplate = (options: ReadResultOptions): Entry => ({
  kind: 'template',
  server: metaSource,
  name: `${uriPrefix}{handle}`,
  definition: {
    uriTemplate: `${uriPrefix}{handle}`,
    name: 'result',
    title: 'Whole result',
    description: 'The whole result of a call that was cut.',
  },
  traits: { readOnly: true, idempotent: true, timeoutMs: 30_000 },
  async run(call): Promise<Result> {
    const { uri = '' } = call.input
    const { kept } = await findResult(options, call.caller, uri.slice(uriPrefix.length), call)
    const { texts, structured } = keptTexts(kept)
    const json = structured?.toString('utf8')
    const all = json === undefined || texts.includes(json) ? texts : [...texts, json]
    const contents = all.map((text) => ({ uri, mimeType: textMediaType(text), text }))
    return resultOf({ contents })
  },
})

const textMediaType = (text: string): string =>
  /^\s*[[{]/.test(text) && isJson(Buffer.from(text.trim())) ? 'application/json' : 'text/plain'

/** The kept result, if its caller may still use the tool. A handle of another principal or agent is not found. */
async function findResult({ access, results }: ReadResultOptions, caller: Caller, handle: string, call: Call) {
  const kept = await results.store.find(caller, handle, results.keepMs)
  if (!kept) {
    const sentence = `There is no result ${quote(handle)}: it may have expired, or belong to another agent. Repeat the call if that is safe.`
    throw new ToolwayError('TOOL_NOT_FOUND', sentence)
  }
  const wait = { signal: call.signal, timeoutMs: 1, parent: call.id }
  const { entry } = await access.view(caller).find('tool', kept.server, kept.tool, wait)
  const decision = results.decide(caller, entry)
  if (!decision.allowed) throw refusalOf(decision, entry.server)
  return { kept, entry }
}

interface WholeResult {
  /** The text blocks, or the structured content if there are none. */
  readonly texts: readonly string[]
  readonly structured: Buffer | undefined
}

function keptTexts({ bytes }: KeptResult): WholeResult {
  const { content } = jsonValue(bytes.toString('utf8')) as ResultBody
  const blocks = Array.isArray(content) ? content.filter((block) => isRecord(block) && block.type === 'text') : []
  const texts = blocks.map(({ text }) => String(text))
  const structured = members(bytes, ['structuredContent'])?.get('structuredContent')
  return { texts: texts.length === 0 && structured ? [structured.toString('utf8')] : texts, structured }
}

/** The JSON at a path of the structured content or of the text; text for a string. */
function jsonTextAt({ texts, structured }: WholeResult, path: string): string {
  const steps = pathSteps(path)
  if (steps === undefined) throw invalidArguments(`Invalid path ${quote(path)}: use $.items[0].name or /items/0/name.`)
  const documents = [...(structured ? [structured] : []), ...texts.map((text) => Buffer.from(text.trim()))]
  for (const document of documents) {
    const found = bytesAt(document, steps)
    if (found && isJson(found))
      return found[0] === 0x22 ? (jsonValue(found.toString('utf8')) as string) : found.toString('utf8')
  }
  throw invalidArguments(`The result has no JSON value at ${quote(path)}.`)
}

async function searchLines(text: string, pattern: string, { compilePattern }: ResultReader, signal: AbortSignal) {
  const isMatch = await compilePattern(pattern)
  if (!isMatch)
    throw invalidArguments(`Unsupported pattern ${quote(pattern)}: use a shorter one, in the syntax of RE2.`)
  const all = text.split('\n')
  const lines: string[] = []
  let began = performance.now()
  for (const line of all) {
    if (isMatch(line.slice(0, maxSearched))) lines.push(line)
    if (performance.now() - began < maxBusyMs) continue
    // Let others work: the text may have a million lines.
    await setImmediate()
    signal.throwIfAborted()
    began = performance.now()
  }
  return { lines, of: all.length }
}

/** The position, or the one after it if it is inside a surrogate pair. */
const afterCharacter = (text: string, at: number): number =>
  at > 0 && /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(at - 1, at + 1)) ? at + 1 : at
