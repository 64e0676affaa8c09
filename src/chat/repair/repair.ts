import { parseJson } from '../../json/parse-json.ts'
import { isRecord } from '../../lib/is-record.ts'
import {
  budgetFor,
  maxRepairDepth,
  noValue,
  type Repair,
  type RepairFailure,
  type RepairResult,
  type StepBudget,
  TextReader,
  tooCostly,
} from './reader.ts'
import { isNextMember, isQuotedKey, pastSpaces } from './scan.ts'
import { readMembers, readValue } from './values.ts'

/** Whether a value has the expected shape. Such a value is preferred if the text contains several values. */
type Accepts = (value: unknown) => boolean

/** Maximum length for lenient parsing. Longer text is parsed strictly, after thinking, fences etc. are removed. */
const maxRepairLength = 64 * 1024

const isContainer = (value: unknown): boolean => typeof value === 'object' && value !== null

/**
 * Finds the JSON value in a model's answer. Valid JSON is returned unchanged; otherwise thinking, fences and prose are
 * removed and the rest is parsed leniently. Runs in linear time.
 */
export function repair(
  text: string,
  { accepts = isContainer }: { readonly accepts?: Accepts } = {},
): RepairResult | RepairFailure {
  const whole = parseStrictly(text)
  if (whole && accepts(whole.value)) return whole
  const found = whole ? fromString(whole, accepts) : repairText(text, accepts)
  if ('unreadable' in found) return whole ?? found
  return unwrapEnvelope(found, accepts)
}

function repairText(text: string, accepts: Accepts, layers = 2): RepairResult | RepairFailure {
  const before: Repair[] = []
  const thought = withoutThinking(withoutTokens(text, before), before)
  if (thought === undefined) return { unreadable: 'contains an unclosed thinking block' }
  const hadThinking = before.includes('removed thinking')
  const bare = withoutFence(withoutQuotation(thought, before), before)
  if (bare.trim() === '') return { unreadable: 'is empty' }
  const strict = parseStrictly(bare)
  if (strict && accepts(strict.value)) return { ...strict, repairs: before }
  const inner = strict && layers > 0 && fromString(strict, accepts, layers - 1)
  if (inner && inner !== strict) return { ...inner, repairs: [...before, ...inner.repairs] }
  if (bare.length > maxRepairLength) return { unreadable: `is too long to repair (${bare.length} characters)` }
  const plainer = layers > 0 ? decodeOnce(bare) : undefined
  const deeper = plainer === undefined ? undefined : repairText(plainer, accepts, layers - 1)
  if (deeper && 'value' in deeper) return { ...deeper, repairs: [...before, 'decoded it again', ...deeper.repairs] }
  const best = bestOf(bare, accepts)
  // The tag that seemed to end the thinking may be part of the answer, so try the whole text.
  if (!best && hadThinking && /^\s*(?:[{[]|```)/.test(text)) {
    const all = bestOf(text, accepts)
    if (all) return all
  }
  if (!best) return { unreadable: 'contains no JSON' }
  // A tag that seems to end thinking may also be part of a string.
  const isTorn = hadThinking && /^\s*[{[]/.test(text)
  return { ...best, ambiguous: isTorn ? unclear : best.ambiguous, repairs: [...before, ...best.repairs] }
}

function bestOf(text: string, accepts: Accepts): RepairResult | undefined {
  const candidates = candidatesIn(text, budgetFor(text))
  const best = candidates.find(({ value }) => accepts(value)) ?? candidates[0]
  if (!best) return undefined
  const around = text.slice(0, best.from).trim() !== '' || text.slice(best.past).trim() !== ''
  const repairs: Repair[] = [...(around ? (['removed surrounding text'] as const) : []), ...best.repairs]
  if (isRivalled(best, candidates)) repairs.unshift('chose one of several values')
  const accepted = outermostInOrder(candidates.filter(({ value, worth }) => worth > 0 && accepts(value)))
  const several =
    accepted.length > 1 ? accepted.map((one) => ({ ...one, ambiguous: doubt(one, text, accepted) })) : undefined
  const { value, complete, lacks } = best
  return { value, complete, lacks, ambiguous: doubt(best, text), several, repairs }
}

/** The candidates in the order of the text, without those inside others. */
const outermostInOrder = (candidates: readonly Candidate[]): readonly Candidate[] =>
  candidates
    .filter(({ from, past }) => !candidates.some((other) => other.from < from && past <= other.past))
    .toSorted((one, other) => one.from - other.from)

const unclear = 'has quotes that are not escaped or not closed, so it is unclear where its strings end'

/** Why the value may not be what was meant; undefined if it is certain. */
function doubt(candidate: Candidate, text: string, all: readonly Candidate[] = [candidate]): string | undefined {
  const { from, past, repairs, ambiguous } = candidate
  if (ambiguous !== undefined) return ambiguous
  const at = all.indexOf(candidate)
  const before = text.slice(all[at - 1]?.past ?? 0, from)
  const rest = text.slice(past, all[at + 1]?.from)
  // After a valid value, the rest may be prose, but not the end of a value: `{"a": "b"} "c", "d": 1}`, `{"a": "b"}[\"c\"]"}`.
  const isTorn = repairs.length === 0 ? mayEndValue(rest) : rest.includes('"')
  return isTorn || isNested(before) ? unclear : undefined
}

const mayEndValue = (rest: string): boolean =>
  /[}\]]$/.test(rest.trimEnd().slice(-1)) &&
  (rest.split(/[\n{[]/, 1).some((begin) => begin.includes('"')) || rest.split(quoteSeparator).length % 2 === 0)

const quoteSeparator = /(?<!\\)(?:\\\\)*"/

/** Whether a value after this text is part of an object that could not be read. */
const isNested = (before: string): boolean =>
  before.includes('"') && before.split('{').length > before.split('}').length

const isRivalled = (best: Candidate, candidates: readonly Candidate[]): boolean =>
  candidates.some((other) => other !== best && other.worth > 0 && (other.past <= best.from || other.from >= best.past))

function parseStrictly(text: string): RepairResult | undefined {
  const value = parseJson(text.trim())
  return value === undefined || isTooDeep(value) ? undefined : { value, repairs: [], complete: true }
}

/** Handles valid JSON that does not have the expected shape, such as a string that contains JSON. */
function fromString(whole: RepairResult, accepts: Accepts, layers = 2): RepairResult {
  let found = whole
  for (let layer = layers; layer >= 0 && typeof found.value === 'string'; layer--) {
    const inner = parseStrictly(found.value) ?? repairText(found.value, accepts, layer)
    if ('unreadable' in inner) break
    found = { ...inner, repairs: ['decoded it again', ...inner.repairs] }
  }
  return found
}

/** Removes an envelope such as `{"response": {…}}` or `[{…}]` if the inner value has the expected shape. */
function unwrapEnvelope(found: RepairResult, accepts: Accepts): RepairResult {
  if (accepts(found.value) || !isContainer(found.value)) return found
  const [inner, ...others] = Object.values(found.value as object)
  if (others.length > 0 || !accepts(inner)) return found
  return { ...found, value: inner, repairs: [...found.repairs, 'unwrapped an envelope'] }
}

const thinkingTags = 'think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis'
const thinkingStart = new RegExp(`^\\s*(?:<(${thinkingTags})>|\\[(THINK)\\]|◁(think)▷)`, 'i')
const thinkingEnd = new RegExp(`</(?:${thinkingTags})>|\\[/THINK\\]|◁/think▷`, 'gi')
const finalChannel = '<|channel|>final<|message|>'
const lastTokens = /(?:\s|<\|[\w-]{1,40}\|>|<\/s>|<eos>|<end_of_turn>|\[\/INST\])+$/

/** Removes thinking; `undefined` if the thinking never ended. */
function withoutThinking(text: string, repairs: Repair[]): string | undefined {
  const final = text.lastIndexOf(finalChannel)
  const end = final >= 0 ? final + finalChannel.length : pastThinking(text)
  if (end !== 0) repairs.push('removed thinking')
  return end === undefined ? undefined : text.slice(end)
}

/** The position after the thinking; 0 if there is none, `undefined` if it never ended. */
function pastThinking(text: string): number | undefined {
  const [begin] = thinkingStart.exec(text) ?? []
  const end = [...text.matchAll(thinkingEnd)].at(-1)
  if (end) return end.index + end[0].length
  if (begin === undefined) return 0
  // Some models open a thinking tag without thinking and never close it. The JSON after the tag is then the answer.
  return /^\s*(?:[{[]|```)/.test(text.slice(begin.length)) ? begin.length : undefined
}

/** Removes special tokens at the end. */
function withoutTokens(text: string, repairs: Repair[]): string {
  // Search only the end of the text: a search from the start would try every space.
  const from = Math.max(0, text.length - 256)
  const tail = lastTokens.exec(text.slice(from))
  if (!tail) return text
  if (/\S/.test(tail[0])) repairs.push('removed special tokens')
  return text.slice(0, from + tail.index)
}

const fence = /^\s*(?:```|~~~)[\w-]*[ \t]*\r?\n?/

function withoutFence(text: string, repairs: Repair[]): string {
  const begin = fence.exec(text)
  if (!begin) return text
  repairs.push('removed a code fence')
  const mark = begin[0].trimStart().slice(0, 3)
  const inside = text.slice(begin[0].length).trimEnd()
  return inside.endsWith(mark) ? inside.slice(0, -3) : inside
}

/** Removes `>` quote markers if every line has one. */
function withoutQuotation(text: string, repairs: Repair[]): string {
  const lines = text.split('\n')
  if (!lines.every((line) => /^\s{0,3}>/.test(line))) return text
  repairs.push('removed surrounding text')
  return lines.map((line) => line.replace(/^\s{0,3}> ?/, '')).join('\n')
}

const escapeMeanings: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' }

const htmlEntities: Readonly<Record<string, string>> = {
  '&quot;': '"',
  '&#34;': '"',
  '&#39;': "'",
  '&apos;': "'",
  '&lt;': '<',
  '&gt;': '>',
  '&amp;': '&',
}

/** Removes one layer of encoding from text that seems to have one too many: `{\"a\": 1}`, `{&quot;a&quot;: 1}`. */
function decodeOnce(text: string): string | undefined {
  const quote = /^[^{[]*[{[](?:\\[nrt]|\s){0,64}(\\"|&quot;|&#34;)/.exec(text)?.[1]
  if (quote === '\\"') return text.replace(/\\([\s\S])/g, (_, sign: string) => escapeMeanings[sign] ?? sign)
  return quote && text.replace(/&(?:quot|#34|#39|apos|lt|gt|amp);/g, (entity) => htmlEntities[entity] as string)
}

function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxRepairDepth) return true
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []))
  }
  return false
}

/** A value found in the text, with its range. */
interface Candidate extends RepairResult {
  readonly from: number
  readonly past: number
  /** The length of the text that the value covers, minus a deduction for unquoted text, which may be prose. */
  readonly worth: number
}

/** Maximum number of values to find in the text. */
const maxCandidates = 256

/** The number of steps that a failed attempt costs. */
const stepsPerFailure = 64

const start = /[{[｛［]/g

/** The objects and lists in the text, valid or not, best first. */
function candidatesIn(text: string, budget: StepBudget): Candidate[] {
  const first = pastSpaces(text, 0)
  const unopened = isQuotedKey(text, first) ? tryReading(new TextReader(text, first, budget), readUnopened) : undefined
  const found = unopened ? [unopened] : []
  let at = 0
  while (budget.left > 0 && found.length < maxCandidates) {
    start.lastIndex = at
    const match = start.exec(text)
    if (!match) break
    const candidate = tryReading(new TextReader(text, match.index, budget), readWhole)
    if (candidate) found.push(candidate)
    // If the value found may be prose, search inside it: `see [the note: {"a": 1}`.
    at = candidate && candidate.worth === candidate.past - candidate.from ? candidate.past : match.index + 1
  }
  return found.toSorted((one, other) => other.worth - one.worth)
}

function tryReading(reader: TextReader, read: (reader: TextReader) => unknown): Candidate | undefined {
  const from = reader.at
  try {
    const value = read(reader)
    const { at: past, repairs, lacks, unquoted, guessed, damaged, uncertain } = reader
    if (repairs.size === 0 && !parseStrictly(reader.text.slice(from, past))) repairs.add('replaced unusual characters')
    const ambiguous = uncertain || (guessed && damaged) ? unclear : undefined
    const complete = lacks === undefined
    return { value, repairs: [...repairs], complete, lacks, ambiguous, from, past, worth: past - from - 2 * unquoted }
  } catch (error) {
    if (error !== noValue && error !== tooCostly) throw error
    reader.budget.left = error === tooCostly ? 0 : reader.budget.left - stepsPerFailure
    return undefined
  }
}

/** Reads a value. If its closing brace came too early, also reads the members that follow. */
function readWhole(reader: TextReader): unknown {
  const value = readValue(reader, 'item')
  for (;;) {
    const next = pastSpaces(reader.text, reader.at)
    if (!isRecord(value) || !isNextMember(reader.text, next)) return value
    reader.at = next + 1
    reader.open.push('{')
    reader.damage('fixed brackets')
    readMembers(reader, value)
  }
}

/** Reads members whose opening brace is missing. */
function readUnopened(reader: TextReader): unknown {
  reader.open.push('{')
  reader.repairs.add('fixed brackets')
  const members = readMembers(reader, {})
  reader.skipGap()
  return members
}
