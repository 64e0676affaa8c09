import { consentRules } from './consent.ts'
import { exfiltrationRules } from './exfiltration.ts'
import { overrideRules, structureRules } from './instruction.ts'
import { languageRules } from './languages.ts'
import type { Rule } from './rule.ts'
import { secrecyRules } from './secrecy.ts'
import { shadowingRules } from './shadowing.ts'

export interface Hit {
  readonly kind: Rule['kind']
  readonly sentence: string
}

interface Indexed extends Rule {
  readonly also: ReadonlySet<string> | undefined
}

const byWord = new Map<string, Indexed[]>()
for (const rule of [
  ...secrecyRules,
  ...overrideRules,
  ...exfiltrationRules,
  ...shadowingRules,
  ...consentRules,
  ...structureRules,
  ...languageRules,
]) {
  const indexed = { ...rule, also: rule.and && new Set(rule.and) }
  for (const word of new Set(rule.needs)) byWord.set(word, [...(byWord.get(word) ?? []), indexed])
}

const tokens = /[A-Za-z][A-Za-z'-]*|[<[#`]/g
const ascii = /^[\x00-\x7f]*$/

/** The sentences that match a rule, at most one per kind of finding. */
export function hitsIn(sentences: readonly string[]): Hit[] {
  const hits = new Map<Rule['kind'], Hit>()
  for (const [index, sentence] of sentences.entries()) {
    for (const { kind, pattern, near, unless } of candidates(sentence)) {
      if (hits.has(kind) || !pattern.test(sentence) || unless?.test(sentence)) continue
      if (near && !near.test(sentences.slice(Math.max(0, index - 1), index + 2).join(' | '))) continue
      hits.set(kind, { kind, sentence })
    }
  }
  return [...hits.values()]
}

function candidates(sentence: string): Iterable<Rule> {
  const found = new Set<Rule>()
  const words = sentence.match(tokens) ?? []
  let all: ReadonlySet<string> | undefined
  for (const word of words) {
    const rules = byWord.get(word)
    if (!rules) continue
    all ??= new Set(words)
    for (const rule of rules) if (rule.also?.isDisjointFrom(all) !== true) found.add(rule)
  }
  if (!ascii.test(sentence)) for (const rule of languageRules) found.add(rule)
  return found
}
