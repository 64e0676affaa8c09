import type { Repair } from './report.ts'

/** A part of an answer that may hold the value, and what was taken away from around it. */
export interface Part {
  readonly text: string
  readonly repairs: readonly Repair[]
}

const names = 'think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis'
const opening = new RegExp(`^\\s*(?:<(${names})>|\\[(THINK)\\]|◁(think)▷)`, 'i')
const closing = new RegExp(`</(?:${names})>|\\[/THINK\\]|◁/think▷`, 'gi')
const channel = '<|channel|>final<|message|>'
const lastTokens = /(?:\s|<\|[\w-]{1,40}\|>|<\/s>|<eos>|<end_of_turn>|\[\/INST\])+$/

/** The answer without the thoughts that came with it; `undefined` where the thoughts never ended. */
export function withoutThinking(text: string): Part | undefined {
  const final = text.lastIndexOf(channel)
  if (final >= 0) return { text: text.slice(final + channel.length), repairs: ['took away thinking'] }
  const begin = opening.exec(text)
  const end = lastMatch(closing, text)
  if (end) return { text: text.slice(end.index + end[0].length), repairs: ['took away thinking'] }
  if (!begin) return { text, repairs: [] }
  const rest = text.slice(begin[0].length)
  // Some models open a thought, have none, and forget to close it.
  return /^\s*(?:[{[]|```)/.test(rest) ? { text: rest, repairs: ['took away thinking'] } : undefined
}

/** Without the tokens that end an answer and should never have been seen. */
export function withoutTokens(text: string): Part {
  // From the end: a search from the start would try every space on the way.
  const from = Math.max(0, text.length - 256)
  const tail = lastTokens.exec(text.slice(from))
  if (!tail) return { text, repairs: [] }
  const kept = text.slice(0, from + tail.index)
  return { text: kept, repairs: /\S/.test(tail[0]) ? ['took away special tokens'] : [] }
}

const fence = /^\s*(?:```|~~~)[\w-]*[ \t]*\r?\n?/

/** Without the fence that the text begins with, and its end. */
export function withoutFence(text: string): Part {
  const begin = fence.exec(text)
  if (!begin) return { text, repairs: [] }
  const mark = begin[0].trimStart().slice(0, 3)
  const inside = text.slice(begin[0].length).trimEnd()
  return {
    text: inside.endsWith(mark) ? inside.slice(0, -3) : inside,
    repairs: ['took away a fence'],
  }
}

/** Without the signs of a quotation, where every line has one. */
export function withoutQuotation(text: string): Part {
  const lines = text.split('\n')
  if (!lines.every((line) => /^\s{0,3}>/.test(line))) return { text, repairs: [] }
  return {
    text: lines.map((line) => line.replace(/^\s{0,3}> ?/, '')).join('\n'),
    repairs: ['took away text around it'],
  }
}

function lastMatch(pattern: RegExp, text: string): RegExpExecArray | undefined {
  let last: RegExpExecArray | undefined
  for (const match of text.matchAll(pattern)) last = match
  return last
}
