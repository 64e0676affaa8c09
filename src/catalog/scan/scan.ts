import { decodedIn } from './decode.ts'
import type { Finding, FindingKind } from './finding.ts'
import { fold, mixedWord, readings } from './fold.ts'
import { hiddenIn } from './hidden.ts'
import { type Hit, hitsIn } from './rules/index.ts'
import { sentencesOf } from './sentences.ts'
import { textsOf } from './texts.ts'
import { excerptOf } from './visible.ts'

/** Changes with the rules, so that what an earlier Toolway found is looked for anew. */
export const scannerVersion = 2

/** Shorter texts have no room for an instruction. */
const shortest = 16

/** A definition is shown to people: more findings than this do not make it clearer. */
const maxFindings = 32

/** Text after so many blanks or empty lines stands where nobody scrolls. */
const farAway = /\S\s{20,}\S/gu
const blanks = 80
const emptyLines = 20

/** Looks at every text of a definition, or at a server's instructions, for what a model might obey and a person not see. */
export function scanDefinition(
  definition: Readonly<Record<string, unknown>>,
  skipped?: ReadonlySet<string>,
): Finding[] {
  const { texts, cut } = textsOf(definition, skipped)
  const findings: Finding[] = []
  for (const { where, text } of texts) {
    if (findings.length >= maxFindings) break
    findings.push(...scanText(text, where))
  }
  if (cut)
    findings.push({ kind: 'unscanned', severity: 'low', where: '', excerpt: 'there is more than can be looked at' })
  return findings.slice(0, maxFindings)
}

/** The same for a single text. */
export function scanText(text: string, where: string): Finding[] {
  const findings = hiddenIn(text, where)
  if (text.length < shortest) return findings
  const add = (kind: FindingKind, severity: Finding['severity'], excerpt: string) => {
    if (!findings.some((finding) => finding.kind === kind)) findings.push({ kind, severity, where, excerpt })
  }
  const mixed = mixedWord(text)
  if (mixed) add('homoglyph', 'low', excerptOf(text, mixed.at, mixed.word.length))
  const far = farIn(text)
  if (far !== undefined) add('padding', 'low', excerptOf(text, far, 60))
  for (const { kind, sentence } of said(text)) add(kind, 'low', excerptOf(sentence, 0, 80))
  for (const decoded of decodedIn(text)) {
    if (said(decoded).length > 0) add('encoded', 'high', excerptOf(decoded, 0, 80))
  }
  return findings
}

/** Where text goes on after a gap that takes it out of sight. */
function farIn(text: string): number | undefined {
  for (const { 0: gap, index } of text.matchAll(farAway)) {
    const lines = gap.split('\n')
    const far = lines.length > emptyLines || lines.some((line) => line.length > blanks)
    if (far) return index + gap.length - 1
  }
  return undefined
}

/** What the rules find in a text, taken as it reads and as it may be meant to read. */
function said(text: string): Hit[] {
  const folded = fold(oneWord.test(text) ? words(text) : unwrapped(text))
  const hits = hitsIn(sentencesOf(folded))
  return hits.length > 0 ? hits : readings(folded).flatMap((reading) => hitsIn(sentencesOf(reading)))
}

const oneWord = /^[A-Za-z0-9_.-]{8,200}$/

/** Lines that only a margin broke, put together again: a sentence goes on in the next line. */
const unwrapped = (text: string): string =>
  text.replace(/(?<=[^\s.!?:;|>*-])[ \t]{0,8}\n[ \t]{0,64}(?=[a-z0-9`'"(~/$<_])/g, ' ')

/** A name taken apart: `sendKeysTo` and `send_keys_to` are three words. */
const words = (name: string): string => name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').replace(/[_.-]+/g, ' ')
