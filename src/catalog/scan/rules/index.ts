import type { Sentence } from '../normalize.ts'
import { exfiltrationRules } from './exfiltration.ts'
import { overrideRules, structureRules } from './instruction.ts'
import { languageRules } from './languages.ts'
import { type Rule, sufficient } from './rule.ts'
import { consentRules, secrecyRules } from './secrecy.ts'
import { shadowingRules } from './shadowing.ts'
import { signals } from './signals.ts'

export interface Hit {
  readonly kind: Rule['kind']
  readonly sentence: string
}

const rules: readonly Rule[] = [
  ...secrecyRules,
  ...overrideRules,
  ...exfiltrationRules,
  ...shadowingRules,
  ...consentRules,
  ...structureRules,
  ...languageRules,
  ...signals,
]

/** The number of neighbouring sentences whose weights are added. */
const passage = 3

/** A sentence that reports what others write ("detects prompts that ignore …", "expected output: ignore …"). */
const report =
  /^(?:[\w-]+ ){0,5}(?:returns?|analy[sz]es|checks?|detects?|flags|compares|classifies|blocks|scans|identif(?:y|ies)|explain(?:s|ing)|describ(?:es|ing)|serves|finds|recogni[sz]es|reports?|removes|warns|lints|rejects|decides|redacts|validates) .{0,80}?\b(?:that|whether|who|which|when|text|such as|like|for|against|tries|attempts?|prompts?|how|phrases?|if|as in)\b|^(?:should|if) (?:an?|the|any) (?:\w+ )?(?:page|result|document|text|e-?mail|file|content)s? (?:tell|ask)s? (?:you|the model)|\b(?:expected|mock|sample|example|training|test|illustrative|canned|simulated|fixture|returned|input)\b[^:]{0,24}: |\b(?:attacks?|attackers?|phrases?|that says|injections?) .{0,60}["'“]/u
const obedience = /\b(?:obey|carry out)\b/u
/** How much the words of others weigh, and the files, addresses and commands in them. */
const reported = { words: 0.4, deeds: 0.6 }
const whole = { words: 1, deeds: 1 }
/** What makes a weak sign mean the opposite ("does not send …"). */
const negation =
  /(?<![\w-])(?:not|never|cannot|without|no|nor|avoid|refuses?|prevents?|blocks?|rejects?|detects?)(?![\w-])[^,;:]*$|n't\b[^,;:]*$/u

interface Weighed extends Hit {
  readonly weight: number
  /** Whether it would suffice alone if it were not reported. Several such signs are often one and the same. */
  readonly sure: boolean
}

/** The passages with sufficient weight, at most one per kind of finding. `suspicion` is the weight of other signs. */
export function hitsIn(sentences: readonly Sentence[], suspicion = 0): Hit[] {
  const hits = new Map<Rule['kind'], Hit>()
  const recent: (readonly (readonly [RegExp, Weighed])[])[] = []
  for (const index of sentences.keys()) {
    const own = signsIn(sentences, index)
    recent.splice(0, recent.length + 1 - passage)
    recent.push(own)
    if (own.length === 0) continue
    const heaviest = new Map<RegExp, Weighed>()
    for (const [pattern, sign] of recent.flat())
      if (sign.weight > (heaviest.get(pattern)?.weight ?? 0)) heaviest.set(pattern, sign)
    const signs = [...heaviest.values()].sort((a, b) => b.weight - a.weight)
    const surest = signs.find(({ sure }) => sure)
    const weight = signs.reduce((sum, sign) => sum + (sign.sure && sign !== surest ? 0 : sign.weight), suspicion)
    if (weight < sufficient) continue
    for (const [at, { kind, sentence, weight }] of signs.entries())
      if ((at === 0 || weight >= sufficient) && !hits.has(kind)) hits.set(kind, { kind, sentence })
  }
  return [...hits.values()]
}

function signsIn(sentences: readonly Sentence[], index: number): (readonly [RegExp, Weighed])[] {
  const { text, code } = sentences[index] as Sentence
  const factors = report.test(text) && !obedience.test(text) ? reported : whole
  const found: (readonly [RegExp, Weighed])[] = []
  for (const { kind, weight, pattern, near, unless } of rules) {
    const at = pattern.exec(code)?.index
    if (at === undefined || unless?.test(code)) continue
    if (weight < sufficient && negation.test(code.slice(Math.max(0, at - 40), at))) continue
    const around = near && sentences.slice(Math.max(0, index - 1), index + 2).map((each) => each.code)
    if (around && !near.test(around.join(' | '))) continue
    const factor = kind === 'exfiltration' ? factors.deeds : factors.words
    const sure = weight >= sufficient || factor === reported.words
    found.push([pattern, { kind, sentence: text, weight: weight * factor, sure }])
  }
  return found
}
