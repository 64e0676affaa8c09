import { latinFor, lookalikes } from '../../lib/characters.ts'

const ignorable = /\p{Default_Ignorable_Code_Point}|[\0-\x08\x0e-\x1f\x7f-\x9f]/gu
const asciiText = /^[\x00-\x7f]*$/
const letterRuns = /[\p{L}\p{M}]+/gu
const latin = /\p{sc=Latn}/u
const foreignLetter = /(?=\p{L})\P{sc=Latn}/u

/** Undoes disguises in text: compatibility forms, hidden characters, look-alikes of Latin letters, and case. */
export function fold(text: string): string {
  if (asciiText.test(text)) return text.toLowerCase()
  return latinizeMixed(text.normalize('NFKC').replace(ignorable, ''))
    .replace(/[\u2018\u2019\u201b\u2032]/g, "'")
    .toLowerCase()
}

export function mixedWord(text: string): { readonly word: string; readonly at: number } | undefined {
  if (asciiText.test(text) || !lookalikes.test(text)) return undefined
  for (const { 0: word, index } of text.matchAll(letterRuns)) {
    // Turkish and others have letters of the Latin script that are also look-alikes, such as ı.
    if (isMixed(word) && foreignLetter.test(word)) return { word, at: index }
  }
  return undefined
}

const isMixed = (word: string): boolean => word.length > 2 && lookalikes.test(word) && latin.test(word)

// Replaces look-alikes of Latin letters, but only in words that mix scripts: genuine Cyrillic and Greek stay unchanged.
const latinizeMixed = (text: string): string =>
  lookalikes.test(text) ? text.replace(letterRuns, (word) => (isMixed(word) ? latinFor(word) : word)) : text

const leetDigits = '0134578@$!'
const leetLetters = 'oieastbasi'
const leetWord = /(?<![a-z0-9@$!.:/_-])[a-z0-9@$!]{2,24}(?![a-z0-9@$!_/-])/g
const leet = /^(?=.*[a-z]).*[0134578@$]/
const apart = /(?<![a-z0-9])[a-z](?:[ .\-_*]{1,4}[a-z](?![a-z0-9])){5,}/g

/** Other readings of folded text: leetspeak as letters, and spaced-out letters joined. Most strings have none. */
export function otherReadings(folded: string): string[] {
  const unleet = folded.replace(leetWord, (word) =>
    leet.test(word) ? word.replace(/[0134578@$!]/g, (sign) => leetLetters[leetDigits.indexOf(sign)] as string) : word,
  )
  return [unleet, joinLetters(folded)].filter((reading) => reading !== folded)
}

/** Joins spaced-out letters. Words are separated by one space, or by two if the letters are separated by spaces. */
const joinLetters = (folded: string): string =>
  folded.replace(apart, (run) =>
    /[.\-_*]/.test(run) ? run.replace(/[.\-_*]/g, '') : run.replace(/ (?! )(?<! {2})/g, '').replace(/ {2,}/g, ' '),
  )

const base64Run = /(?<![\w+/-])[\w+/-]{16,}={0,2}(?![\w+/=])/g
const hexRun = /(?<![\w])(?:0x)?((?:[0-9a-f]{2}){12,})(?!\w)/gi
const percent = /(?:%[0-9a-f]{2}){4,}/gi
const entity = /&#(?:x([0-9a-f]{1,6})|([0-9]{1,7}));/gi
const unicodeEscape = /\\(?:u\{?([0-9a-f]{2,6})\}?|x([0-9a-f]{2}))/gi

/** A quick test before `decodedIn`: encoded text has long unbroken runs, or characters that prose does not have. */
const unbroken = /[\w+/=-]{16}|%[0-9a-f]{2}%|&#|\\[ux]/i

/** Whether decoded bytes are text. Those of numbers and hashes are not. */
const isDecodedText = (text: string): boolean => text.length >= 8 && !/[\ufffd\0-\x08\x0e-\x1f\x7f]/.test(text)

/** The texts that a string contains in encoded form (base64, hex, percent encoding, entities, escapes), also twice. */
export function decodedIn(text: string): string[] {
  if (!unbroken.test(text)) return []
  const runs = [...text.matchAll(base64Run)].map(([run]) => Buffer.from(run, 'base64').toString('utf8'))
  const numbers = [...text.matchAll(hexRun)].map(([, digits = '']) => Buffer.from(digits, 'hex').toString('utf8'))
  const escaped = [...text.matchAll(percent)].map(([run]) =>
    Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'),
  )
  const found = [...runs, ...numbers].filter(isDecodedText).concat(escaped)
  // Entities and escapes encode single letters within other text, so decode the text as a whole.
  for (const pattern of [entity, unicodeEscape]) {
    if ((text.match(pattern)?.length ?? 0) < 6) continue
    found.push(
      text.replace(pattern, (_, first?: string, second?: string) => {
        const point =
          pattern === entity && second !== undefined ? Number(second) : Number.parseInt(first ?? second ?? '', 16)
        return point <= 0x10ffff ? String.fromCodePoint(point) : ''
      }),
    )
  }
  return found.flatMap((decoded) => [decoded, ...decodedIn(decoded)])
}

type StandIn = readonly [name: string, sign: RegExp, pattern: RegExp]

/**
 * Placeholders for things that rules refer to. They are in capitals, which folded text does not have. For example, FILE
 * is a file known for its secrets, URL an external address, NAME an argument or a tool.
 */
const standIns: readonly StandIn[] = [
  [' PIPED ', /\|/, /(?:\b(?:curl|wget)\b [^\n|]{0,160})?\| ?(?:sudo )?(?:ba|z)?sh\b/g],
  [
    ' CMD ',
    /[-|$/] ?[\w(]|sudo/,
    /\b(?:curl|wget)\b [^\n]{0,80}(?:https?:\/\/|-[a-z])[^\s'"`]{0,80}|\brm -[rf]+\b|\bsudo (?!to\b|is\b|or\b|and\b|if\b|access|rights|privil)\w+|\bchmod (?:\+|[0-7]{3})|\b(?:ba|z)?sh -[ci]\b|\b(?:pip3?|npm|npx|uvx?|gem) install\b[^\n]{0,60}(?:--index-url|--registry|https?:)|\b(?:python3?|node|perl) -[ce]\b|\/dev\/tcp\/|\bnc -\w|\bpowershell\b[^\n]{0,20} -e|\bbase64 (?:-d|--decode)|\becho \$|\$\((?:whoami|id|date|cat|env)/g,
  ],
  [' BEACON ', /!\[/, /!\[[^\]\n]{0,200}\]\([^)\n]{0,20}:\/\/[^)\n]{0,300}[?&][^)\n]{0,80}=[^)\n]{0,200}\)/g],
  [' URL ', /:\/\//, /\b(?:https?|ftp|wss?):\/\/[^\s)'"`<>]+/g],
  [' URL ', /@/, /(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){0,8}(?::[\w./-]{0,100})?/g],
  [
    ' URL ',
    /\w\.[a-z]/,
    /(?<![\w.@/-])(?:[a-z0-9-]{1,63}\.){1,4}(?:com|net|org|io|xyz|ru|cn|info|top|site|online|club|example|invalid)\b(?:[:/][\w./-]{0,100})?/g,
  ],
  [' URL ', /\+\d/, /(?<!\w)\+\d[\d -]{6,18}/g],
  [' URL ', /\d\.\d/, /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g],
  [
    ' FILE ',
    /\/\./,
    /(?:~|\$home|%userprofile%|\/root|\/home\/[\w<>$-]{1,32}|\/users\/[\w<>$-]{1,32})\/\.(?:ssh|aws\/credentials|gnupg|netrc|npmrc|pypirc|docker|kube|git-credentials|config\/(?:gh|gcloud|google-chrome|chromium)|bash_history|zsh_history|cursor|claude|vscode|mozilla|azure|env)[\w./*-]*/g,
  ],
  [
    ' FILE ',
    /\.(?:ssh|aws|kube|gnupg|env|netrc|npmrc|git-|bash_|zsh_|pgpass)/,
    /(?<![\w-])\.(?:(?:ssh|aws|kube|gnupg)\/[\w./-]+|env(?:\.[a-z]+)?|netrc|npmrc|git-credentials|bash_history|zsh_history|pgpass)(?![\w-])(?: files?)?/g,
  ],
  [
    ' FILE ',
    /id_|\/etc\/|\/proc\//,
    /\bid_(?:rsa|dsa|ecdsa|ed25519)\b(?!\.pub)|\/etc\/(?:passwd|shadow|sudoers)\b|\/proc\/self\/environ\b/g,
  ],
  [
    ' FILE ',
    /\.(?:json|ya?ml|csv|toml|env|dat|txt)\b/,
    /(?<![\w~$./-])[\w~$./-]{0,100}\b(?:mcp\.json|claude_desktop_config\.json|credentials\.(?:json|ya?ml|csv)|secrets?\.(?:json|ya?ml|toml|env|txt)|wallet\.dat|kubeconfig\.ya?ml|service[-_]account\.json)\b/g,
  ],
  [' NAME $1 ', /`/, /`([^`\n]{1,60})`/g],
  [' NAME $1$2 ', /['"]/, /(?<![\w'])'([a-z][\w.-]{0,40})'(?!\w)|"([a-z][\w.-]{0,40})"/g],
  [' NAME $1 ', /_/, /(?<!\w)([a-z][a-z0-9]{0,40}(?:_[a-z0-9]{1,40}){1,8})(?!\w)/g],
]

/** Quoted examples of what a tool detects. They are removed before scanning, because they are not instructions. */
const quotedExample =
  /\b(?:such as|like|e\.g\.|for example|for instance|phrases?|attempts? to)[:,]? ["“«][^"”»\n]{0,200}["”»]/g

/** Questions about the text that a tool examines. They are removed, because they are not instructions to a model. */
const questionAboutText = /(?:^|[:;,] )(?:does|is|are|do|has|have|did|whether) (?:it|the|this|they|an?)\b[^?]{0,200}\?/g

export interface Sentence {
  readonly text: string
  /** The text with placeholders, which the rules match. */
  readonly code: string
}

export function sentencesOf(folded: string): Sentence[] {
  let text = /["“«]/.test(folded) ? folded.replace(quotedExample, ' ') : folded
  if (text.includes('?')) text = text.replace(questionAboutText, ' ')
  return text
    .split(/(?<=[.!?;])\s+|(?<=[。！？；])|\n+|\s-\s/)
    .map(squeezeSpaces)
    .filter((sentence) => sentence.length > 5)
    .flatMap(overlappingPieces)
    .map((sentence) => ({ text: sentence, code: withStandIns(sentence) }))
}

const squeezeSpaces = (text: string): string => text.replace(/[\s*]+/g, ' ').trim()

function withStandIns(sentence: string): string {
  let code = sentence
  for (const [name, sign, pattern] of standIns) if (sign.test(code)) code = code.replace(pattern, name)
  return code === sentence ? code : squeezeSpaces(code)
}

/** Max length of a sentence. Legitimate sentences are shorter; longer ones are scanned in overlapping pieces. */
const maxSentence = 1_000
const pieceOverlap = 200

function overlappingPieces(sentence: string): string[] {
  if (sentence.length <= maxSentence) return [sentence]
  const found: string[] = []
  for (let at = 0; at < sentence.length; at += maxSentence - pieceOverlap)
    found.push(sentence.slice(at, at + maxSentence))
  return found
}
