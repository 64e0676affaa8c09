import type { FindingKind } from '../finding.ts'

/** The weight from which on a passage is reported. */
export const sufficient = 3

/** A sign of a poisoned definition. It is matched against folded sentences with placeholders. */
export interface ScanRule {
  readonly kind: FindingKind
  readonly weight: number
  readonly pattern: RegExp
  /** This pattern must match too, in the same sentence or an adjacent one. */
  readonly near?: RegExp
  /** If this pattern matches, the sentence counts as legitimate. */
  readonly unless?: RegExp
}

export const scanRules = (
  kind: ScanRule['kind'],
  rules: readonly (Omit<ScanRule, 'kind' | 'weight'> & Partial<Pick<ScanRule, 'weight'>>)[],
): readonly ScanRule[] => rules.map((rule) => ({ kind, weight: sufficient, ...rule }))

/** Alternative phrases, from comma-separated lists, as part of a pattern. */
export const anyOf = (...lists: readonly string[]): string =>
  `(?:${lists.flatMap((list) => list.split(', ')).join('|')})`

/** Creates a regular expression. Gaps in the pattern must be short, so that matching takes linear time. */
export const signPattern = (parts: TemplateStringsArray, ...inserted: readonly string[]): RegExp =>
  new RegExp(String.raw(parts, ...inserted), 'u')

export const neverWords = anyOf(
  "do not, don't, dont, never, must not, mustn't, should not, shouldn't, shall not, may not, avoid, refrain from",
  "without, not to, no need to, needn't, under no circumstances, in no case, by no means, stop, skip, abstain from, resist",
)

/** Phrases for the model's user. "Users" is not among them: it mostly means the users of some product. */
export const person = anyOf(
  'the user, the end user, the end-user, the human, the person, the operator, the customer, the owner, the traveller',
  'your user, any human, any user, humans?, anyone, anybody, someone, somebody',
)

/** Verbs for passing something on, in base form: "sends" describes the tool, but "send" instructs the model. */
export const putVerbs = anyOf(
  'pass, put, place, supply, provide, send, submit, include, attach, append, hand, fill, paste, give, insert, share',
  'deposit, add, copy, embed, transmit, forward, upload, carry, deliver, email, e-mail, mail, post, slip, relay, enter',
  'encode, dump, leak, report, replicate, let me have, turn over, stuff, smuggle, record, expose, exfiltrate',
  'envoie, envoyez, mets, mettez, ajoute, sende, sendet, schicke, füge, invia, inviare, envía, envíalo, enviar, envie, manda, stuur',
)

export const takeVerbs = anyOf(
  'read, open, load, cat, get, fetch, retrieve, extract, collect, gather, copy, peek, look, include, attach, grab',
  'obtain, find, dump, print, harvest, access, locate, search, take, scan, view, consult, examine, inspect, pull, steal',
  'lis, lisez, lee, leer, lese, leggi, leia, lees',
)

export const secret = anyOf(
  'private keys?, ssh keys?, api[- ]?keys?, access keys?, aws secret access keys?, secret (?:access )?keys?',
  'encryption keys?, signing keys?, passwords? files?, passwords?, passphrases?, secrets?, credentials?, login data',
  'login details, seed phrases?, recovery phrases?, mnemonics?, (?:database )?connection strings?, (?:session )?cookies?',
  '(?:access|session|auth|bearer|refresh|oauth) tokens?, credit cards?, card numbers?, cvv, cvc',
  'one-time codes?, one-time passwords?, verification codes?, otp, 2fa codes?, social security numbers?, bank details',
)

/** Phrases for the conversation between model and user, and for the model's instructions. */
export const talkNouns = anyOf(
  'conversations?(?! ids?\\b), chat (?:history|log|context|messages?), chats?(?! ids?\\b), dialog(?:ue)?s?, transcripts?',
  'message history, conversation (?:history|log|context), session history, system (?:prompt|message|instructions?)',
  'hidden prompt, user messages?, user (?:input|prompt)',
)
