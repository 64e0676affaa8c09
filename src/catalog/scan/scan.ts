import { hiddenCharacters, spellLookalikes } from '../../lib/characters.ts'
import { excerptOf, type FindingKind, type ScanFinding, visible } from './finding.ts'
import type { ToolNames } from './lookalike-names.ts'
import { decodedIn, fold, mixedWord, otherReadings, type Sentence, sentencesOf } from './normalize.ts'
import { attackRules } from './rules/attacks.ts'
import { type ScanRule, sufficient } from './rules/rule.ts'
import { signals } from './rules/signals.ts'

/** The version of the rules. Increment it when they change, so that definitions are scanned again. */
export const scannerVersion = 4

/** Min length of text to scan. Shorter text cannot hold an instruction. */
const minScanned = 16

const maxScanFindings = 32

/** A stretch of white space so long that the text after it may be out of view. */
const farAway = /\S\s{20,}\S/gu
const blanks = 80
const emptyLines = 20

/** The tool of another server that has this name. */
type ForeignTool = (name: string) => string | undefined

/** Scans all strings in a definition or in instructions for text that a model might obey or people might not see. */
export function scanDefinition(
  definition: Readonly<Record<string, unknown>>,
  skipped?: ReadonlySet<string>,
  foreign?: ForeignTool,
): ScanFinding[] {
  const { texts, cut } = textsToScan(definition, skipped)
  const findings: ScanFinding[] = []
  for (const { where, text } of texts) {
    if (findings.length >= maxScanFindings) break
    findings.push(...scanText(text, where, foreign))
  }
  if (cut)
    findings.push({
      kind: 'unscanned',
      severity: 'warn',
      where: '',
      excerpt: 'the definition is too large to scan completely',
    })
  return findings.slice(0, maxScanFindings)
}

/** Like `scanDefinition`, for a definition beside the tools of other servers. */
export function scanAmong(
  names: ToolNames,
  { server, kind, name }: { readonly server: string; readonly kind: string; readonly name: string },
  definition: Readonly<Record<string, unknown>>,
): ScanFinding[] {
  const findings = scanDefinition(definition, undefined, (word) => names.foreign(server, word))
  const other = kind === 'tool' ? names.resembling(server, name, definition.description) : undefined
  if (other === undefined) return findings
  const excerpt = `${excerptOf(spellLookalikes(name))} resembles ${visible(other)}`
  return [...findings, { kind: 'look-alike', severity: 'warn', where: 'name', excerpt }]
}

/** Whether a finding flags its text. Others are only shown. */
export const isFlag = ({ severity }: ScanFinding): boolean => severity !== 'info'

/** Names that are not words: `read_file`, `read-file`, `readFile`. */
const codeNamesIn = (text: string): readonly string[] =>
  (text.match(/\b[A-Za-z][\w-]{5,63}/g) ?? []).filter((word) => /[_-]|[a-z][A-Z]/.test(word)).slice(0, maxNames)

export function scanText(text: string, where: string, foreign?: ForeignTool): ScanFinding[] {
  const findings = hiddenIn(text, where)
  const add = (kind: FindingKind, severity: ScanFinding['severity'], excerpt: string) => {
    if (!findings.some((finding) => finding.kind === kind)) findings.push({ kind, severity, where, excerpt })
  }
  const mixed = mixedWord(text)
  if (mixed)
    add('homoglyph', 'warn', `${excerptOf(text, mixed.at, mixed.word.length)} (${spellLookalikes(mixed.word)})`)
  if (text.length < minScanned) return findings
  const far = farIn(text)
  if (far !== undefined) add('padding', 'warn', excerptOf(text, far, 60))
  const named = foreign && codeNamesIn(text).map(foreign).find(Boolean)
  const suspicion =
    (findings.length > 0 ? suspicionWeights.otherFinding : 0) + (named ? suspicionWeights.foreignTool : 0)
  for (const { kind, sentence } of hitsOf(text, suspicion)) {
    add(kind, 'warn', excerptOf(sentence, 0, 80))
    if (named) add('shadowing', 'warn', `names ${visible(named)}: ${excerptOf(sentence, 0, 80)}`)
  }
  for (const decoded of decodedIn(text)) {
    if (hitsOf(decoded, suspicionWeights.encoded).length > 0)
      add('encoded', 'high', `decoded: ${excerptOf(decoded, 0, 80)}`)
  }
  return findings
}

/** What a passage weighs more if its text also has another finding, names another server's tool, or was encoded. */
const suspicionWeights = { otherFinding: 1, foreignTool: 2, encoded: 1.5 }
const maxNames = 100

function farIn(text: string): number | undefined {
  for (const { 0: gap, index } of text.matchAll(farAway)) {
    const lines = gap.split('\n')
    const far = lines.length > emptyLines || lines.some((line) => line.length > blanks)
    if (far) return index + gap.length - 1
  }
  return undefined
}

/** Applies the rules to text and, if nothing matches, to versions of it in which disguises are undone. */
function hitsOf(text: string, bonus: number): Hit[] {
  const folded = fold(oneWord.test(text) ? splitName(text) : unwrapLines(text))
  const hits = hitsIn(sentencesOf(folded), bonus)
  return hits.length > 0 ? hits : otherReadings(folded).flatMap((reading) => hitsIn(sentencesOf(reading), bonus))
}

const oneWord = /^[A-Za-z0-9_.-]{8,200}$/

const unwrapLines = (text: string): string =>
  text.replace(/(?<=[^\s.!?:;|>*-])[ \t]{0,8}\n[ \t]{0,64}(?=[a-z0-9`'"(~/$<_])/g, ' ')

/** Splits a name into words: both `sendKeysTo` and `send_keys_to` become three words. */
const splitName = (name: string): string => name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').replace(/[_.-]+/g, ' ')

interface HiddenPlace {
  readonly at: number
  count: number
  insideWord: boolean
}

/** Findings for characters that hide something from the reader. Excludes legitimate uses in emoji and other scripts. */
function hiddenIn(text: string, where: string): ScanFinding[] {
  const places = new Map<FindingKind, HiddenPlace>()
  for (const { character, at } of hiddenCharacters(text)) {
    const kind = hiddenKind(character.codePointAt(0) as number)
    const place = places.get(kind) ?? { at, count: 0, insideWord: false }
    place.count++
    place.insideWord ||= isInsideWord(text, at, at + character.length)
    places.set(kind, place)
  }
  const own = text.search(privateUse)
  if (own >= 0) places.set('hidden-character', { at: own, count: 2, insideWord: true })
  return [...places].map(([kind, place]) => {
    // A single hidden character between words is often a leftover from a word processor, or a byte order mark.
    const leftover = kind === 'hidden-character' && place.count === 1 && !place.insideWord
    return { kind, severity: leftover ? 'info' : 'high', where, excerpt: excerptOf(text, place.at, 1) }
  })
}

function hiddenKind(point: number): FindingKind {
  if (point < 0xa0 && point !== 0xad) return 'escape'
  if (point >= 0xe0000 && point <= 0xe007f) return 'tag-characters'
  return (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) ? 'bidi' : 'hidden-character'
}

/** Characters without a meaning of their own, which only some fonts draw. */
const privateUse = /\p{Co}/u

const letterBefore = /\p{L}$/u
const letterAfter = /^\p{L}/u

const isInsideWord = (text: string, from: number, to: number): boolean =>
  letterBefore.test(text.slice(Math.max(0, from - 2), from)) && letterAfter.test(text.slice(to, to + 2))

/** Max characters to scan. No definition should put more than that into a model's context. */
const maxScanned = 262_144
const maxScannedTexts = 20_000
const maxScanDepth = 64

/** All strings in a definition: values and member names at any depth. Skips `_meta`, which only programs read. */
function textsToScan(definition: Readonly<Record<string, unknown>>, skipped: ReadonlySet<string> = noKeys) {
  const texts: { readonly where: string; readonly text: string }[] = []
  let characters = 0
  let cut = false

  const add = (where: string, text: string) => {
    const room = maxScanned - characters
    const full = texts.length >= maxScannedTexts || room <= 0
    cut ||= full || text.length > room
    if (full) return
    texts.push({ where, text: text.slice(0, room) })
    characters += text.length
  }

  const walk = (value: unknown, where: string, depth: number): void => {
    if (typeof value === 'string') add(where, value)
    if (typeof value !== 'object' || value === null) return
    cut ||= depth > maxScanDepth
    if (cut) return
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) walk(item, `${where}[${index}]`, depth + 1)
      return
    }
    for (const [key, item] of Object.entries(value)) {
      if ((depth === 0 && key === '_meta') || skipped.has(key)) continue
      const inside = where === '' ? key : `${where}.${key.slice(0, maxShownKey)}`
      // Skip short plain keys, as in the protocol and JSON Schema. Scan all others, because the server chose them.
      if (!isProtocolKey(key)) add(inside, key)
      walk(item, inside, depth + 1)
    }
  }

  walk(definition, '', 0)
  return { texts, cut }
}

const noKeys: ReadonlySet<string> = new Set()
const maxShownKey = 100

const isProtocolKey = (key: string): boolean => key.length < 16 && /^[A-Za-z$][A-Za-z0-9]*$/.test(key)

interface Hit {
  readonly kind: ScanRule['kind']
  readonly sentence: string
}

const signRules: readonly ScanRule[] = [...attackRules, ...signals]

/** The number of neighbouring sentences whose weights are added. */
const passage = 3

/** A sentence that reports what others write ("detects prompts that ignore …", "expected output: ignore …"). */
const reportOfOthers =
  /^(?:[\w-]+ ){0,5}(?:returns?|analy[sz]es|checks?|detects?|flags|compares|classifies|blocks|scans|identif(?:y|ies)|explain(?:s|ing)|describ(?:es|ing)|serves|finds|recogni[sz]es|reports?|removes|warns|lints|rejects|decides|redacts|validates) .{0,80}?\b(?:that|whether|who|which|when|text|such as|like|for|against|tries|attempts?|prompts?|how|phrases?|if|as in)\b|^(?:should|if) (?:an?|the|any) (?:\w+ )?(?:page|result|document|text|e-?mail|file|content)s? (?:tell|ask)s? (?:you|the model)|\b(?:expected|mock|sample|example|training|test|illustrative|canned|simulated|fixture|returned|input)\b[^:]{0,24}: |\b(?:attacks?|attackers?|phrases?|that says|injections?) .{0,60}["'“]/u
const obedience = /\b(?:obey|carry out)\b/u
/** How much the words of others weigh, and the files, addresses and commands in them. */
const reportedFactors = { words: 0.4, deeds: 0.6 }
const ownFactors = { words: 1, deeds: 1 }
/** What makes a weak sign mean the opposite ("does not send …"). */
const negation =
  /(?<![\w-])(?:not|never|cannot|without|no|nor|avoid|refuses?|prevents?|blocks?|rejects?|detects?)(?![\w-])[^,;:]*$|n't\b[^,;:]*$/u

interface Weighed extends Hit {
  readonly weight: number
  /** Whether it would suffice alone if it were not reported. Several such signs are often one and the same. */
  readonly sure: boolean
}

/** The passages with sufficient weight, at most one per kind of finding. `suspicion` is the weight of other signs. */
function hitsIn(sentences: readonly Sentence[], suspicion = 0): Hit[] {
  const hits = new Map<ScanRule['kind'], Hit>()
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
  const factors = reportOfOthers.test(text) && !obedience.test(text) ? reportedFactors : ownFactors
  const found: (readonly [RegExp, Weighed])[] = []
  for (const { kind, weight, pattern, near, unless } of signRules) {
    const at = pattern.exec(code)?.index
    if (at === undefined || unless?.test(code)) continue
    if (weight < sufficient && negation.test(code.slice(Math.max(0, at - 40), at))) continue
    const around = near && sentences.slice(Math.max(0, index - 1), index + 2).map((each) => each.code)
    if (around && !near.test(around.join(' | '))) continue
    const factor = kind === 'exfiltration' ? factors.deeds : factors.words
    const sure = weight >= sufficient || factor === reportedFactors.words
    found.push([pattern, { kind, sentence: text, weight: weight * factor, sure }])
  }
  return found
}
