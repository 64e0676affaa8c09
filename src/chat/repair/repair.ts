import { type Candidate, candidatesIn } from './candidates.ts'
import { decodedOnce } from './decoded.ts'
import { isTooDeep } from './depth.ts'
import { purseFor } from './reader.ts'
import type { Repair, Repaired, Unreadable } from './report.ts'
import { withoutFence, withoutQuotation, withoutThinking, withoutTokens } from './unwrap.ts'

export interface RepairOptions {
  /** Whether a value has the wanted shape. Of several values in a text, one that has it is taken. */
  readonly accepts?: (value: unknown) => boolean
}

/** Longer texts are taken if they are JSON, with a fence or thoughts around it at most, and otherwise not mended. */
const longest = 64 * 1024

const isContainer = (value: unknown): boolean => typeof value === 'object' && value !== null

/**
 * Finds the JSON value that a model meant. Text that is JSON already is taken as it is; otherwise thoughts, fences and
 * prose are taken away and what is left is read leniently. Takes time in proportion to the text, whatever it holds.
 */
export function repair(text: string, { accepts = isContainer }: RepairOptions = {}): Repaired | Unreadable {
  const whole = strictly(text)
  if (whole && accepts(whole.value)) return whole
  const found = whole ? fromString(whole, accepts) : mended(text, accepts)
  if ('unreadable' in found) return whole ?? found
  return unwrapped(found, accepts)
}

function mended(text: string, accepts: (value: unknown) => boolean, layers = 2): Repaired | Unreadable {
  const tokens = withoutTokens(text)
  const thought = withoutThinking(tokens.text)
  if (!thought) return { unreadable: 'is a thought that never ends' }
  const quotation = withoutQuotation(thought.text)
  const fence = withoutFence(quotation.text)
  const before = [tokens, thought, quotation, fence].flatMap(({ repairs }) => repairs)
  if (fence.text.trim() === '') return { unreadable: 'is empty' }
  const strict = strictly(fence.text)
  if (strict && accepts(strict.value)) return { ...strict, repairs: before }
  if (fence.text.length > longest) return { unreadable: `is too long to be mended (${fence.text.length} characters)` }
  const plainer = layers > 0 ? decodedOnce(fence.text) : undefined
  const deeper = plainer === undefined ? undefined : mended(plainer, accepts, layers - 1)
  if (deeper && 'value' in deeper) return { ...deeper, repairs: [...before, 'decoded it once more', ...deeper.repairs] }
  const best = bestOf(fence.text, accepts)
  // A closing tag inside the answer is no end of a thought.
  if (!best && thought.repairs.length > 0 && /^\s*(?:[{[]|```)/.test(text)) {
    const all = bestOf(text, accepts)
    if (all) return all
  }
  return best ? { ...best, repairs: [...before, ...best.repairs] } : { unreadable: 'holds no JSON' }
}

function bestOf(text: string, accepts: (value: unknown) => boolean): Repaired | undefined {
  const candidates = candidatesIn(text, purseFor(text))
  const best = candidates.find(({ value }) => accepts(value)) ?? candidates[0]
  if (!best) return undefined
  const around = text.slice(0, best.from).trim() !== '' || text.slice(best.past).trim() !== ''
  const repairs: Repair[] = [...(around ? (['took away text around it'] as const) : []), ...best.repairs]
  if (isRivalled(best, candidates)) repairs.unshift('chose one of several values')
  return { value: best.value, complete: best.complete, lacks: best.lacks, repairs }
}

const isRivalled = (best: Candidate, candidates: readonly Candidate[]): boolean =>
  candidates.some((other) => other !== best && other.worth > 0 && (other.past <= best.from || other.from >= best.past))

function strictly(text: string): Repaired | undefined {
  try {
    const value: unknown = JSON.parse(text.trim())
    return isTooDeep(value) ? undefined : { value, repairs: [], complete: true }
  } catch {
    return undefined
  }
}

/** JSON as it stands, but not of the wanted shape: perhaps a string that holds it. */
function fromString(whole: Repaired, accepts: (value: unknown) => boolean): Repaired | Unreadable {
  let found = whole
  for (let layer = 0; layer < 3 && typeof found.value === 'string'; layer++) {
    const inner = strictly(found.value) ?? mended(found.value, accepts)
    if ('unreadable' in inner) break
    found = { ...inner, repairs: ['decoded it once more', ...inner.repairs] }
  }
  return found
}

/** `{"response": {…}}` and `[{…}]` where what is inside was wanted. */
function unwrapped(found: Repaired, accepts: (value: unknown) => boolean): Repaired {
  if (accepts(found.value) || !isContainer(found.value)) return found
  const [inner, ...others] = Object.values(found.value as object)
  if (others.length > 0 || !accepts(inner)) return found
  return { ...found, value: inner, repairs: [...found.repairs, 'took it out of an envelope'] }
}
