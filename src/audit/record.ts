import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  hash as digest,
  hkdfSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import type { AuditBegin, AuditEnd, AuditSubject } from '../core/audit.ts'
import { archiveNames } from '../core/audit-archive.ts'
import { fixedLimits } from '../core/limits/fixed-limits.ts'
import { canonical, defaultMaxDepth, TooLong } from '../json/canonical-json.ts'
import { parseJson } from '../json/parse-json.ts'
import { isRecord } from '../lib/is-record.ts'
import { setBounded } from '../lib/memoize.ts'

export interface ChainedRecord {
  /** ISO 8601 in UTC, with milliseconds. */
  readonly time: string
  readonly seq: number
  /** The hash of the previous record. All zeros for a lane's first record. */
  readonly prev: string
  readonly hash: string
}

/** The beginning of an operation. `arguments`: redacted, truncated, or `"dropped"` if the redactor failed. */
export interface BeforeRecord extends ChainedRecord, Omit<AuditBegin, 'arguments'> {
  readonly phase: 'before'
  readonly arguments?: unknown
}

export interface AfterRecord extends ChainedRecord, AuditEnd {
  readonly phase: 'after'
}

/** Replaces arguments that are too long to record. */
export interface TruncatedArguments {
  readonly truncated: true
  readonly bytes: number
  readonly sha256: string
  readonly start: string
}

/** A record about the log itself. It has no `phase` and is signed. */
interface ControlRecordBase extends ChainedRecord {
  readonly phase?: undefined
  readonly lane: string
  /** The ID of the key: the start of the SHA-256 of the public key. */
  readonly key: string
  /** An Ed25519 signature, in base64url, of the canonical JSON of the record without `signature` and `hash`. */
  readonly signature: string
}

/** The first record of each file. */
export interface SegmentRecord extends ControlRecordBase {
  readonly operation: 'segment'
  readonly reason: 'first' | 'size' | 'age' | 'abandoned'
  /** The previous file and the length of its valid part. Absent for a lane's first file. */
  readonly previous?: { readonly file: string; readonly bytes: number }
}

export interface StartRecord extends ControlRecordBase {
  readonly operation: 'start'
  readonly pid: number
  readonly host: string
  readonly version: string
  /** All lanes that existed when the process started, so that the deletion of a lane is detected. */
  readonly lanes: readonly string[]
  readonly torn?: number
  /**
   * The number of records from the previous, killed process that neither a signature nor `head` confirms. If they are
   * genuine, they are records of reads in that process's last second.
   */
  readonly unproven?: number
}

/** A signed record. Through `prev`, its signature covers all records before it. */
export interface CheckpointRecord extends ControlRecordBase {
  readonly operation: 'checkpoint'
  /** Set if the process closed the lane. Only the start record of another process may follow. */
  readonly final?: true
}

/** How many records are missing because of an outage. */
export interface Unrecorded {
  readonly refused: number
  /** Missing records of reads (which ran anyway), of denials, and of the ends of writes that have run. */
  readonly reads: number
  readonly denials: number
  readonly writes: number
  /** The number of records that were written but may not be on disk, because syncing them failed. */
  readonly unsynced: number
}

/** Reports missing or damaged records. */
export interface GapRecord extends ControlRecordBase {
  readonly operation: 'gap'
  /** `unrecorded` is an outage that Toolway itself reports; every other reason means tampering or damage. */
  readonly reason: 'unrecorded' | 'records_missing' | 'records_changed' | 'damaged' | 'head_missing' | 'head_invalid'
  readonly error?: string
  readonly since?: string
  readonly unrecorded?: Unrecorded
  readonly missing?: { readonly from: number; readonly to: number }
}

/** Written before the records up to and including `removed.to` are removed because of their age. */
export interface RetentionRecord extends ControlRecordBase {
  readonly operation: 'retention'
  readonly removed: { readonly from: number; readonly to: number }
}

export type EventRecord = BeforeRecord | AfterRecord
export type ControlRecord = SegmentRecord | StartRecord | CheckpointRecord | GapRecord | RetentionRecord
export type AuditRecord = EventRecord | ControlRecord

export const isEvent = (record: AuditRecord): record is EventRecord => record.phase !== undefined

export const zeroHash = '0'.repeat(64)

/** Parses a line. Undefined if it is not a valid record: after tampering, a line may contain anything. */
export function parseRecord(text: string): AuditRecord | undefined {
  const value = parseJson(text)
  return isRecord(value) && hasForm(value) ? (value as unknown as AuditRecord) : undefined
}

const hasForm = (value: Readonly<Record<string, unknown>>): boolean =>
  Number.isSafeInteger(value.seq) &&
  [value.time, value.prev, value.hash, value.operation].every(isText) &&
  archiveNames.every((name) => value[name] === undefined || isText(value[name])) &&
  (value.phase === undefined || ((value.phase === 'before' || value.phase === 'after') && isText(value.call)))

const isText = (value: unknown): boolean => typeof value === 'string'

/**
 * A record on disk is one line. Its members are in canonical order (RFC 8785), except that `hash` comes last:
 *
 *     {"agent":"dev",…,"prev":"<64 hex>","seq":7,…,"write":false,"hash":"<64 hex>"}⏎
 *
 * `hash` is the SHA-256, in lower-case hex, of the UTF-8 bytes of the line up to but excluding `,"hash":"`, followed by
 * one `}`. Those bytes are the canonical JSON of the record without `hash`. Since this JSON includes `prev`, each
 * hash covers all previous records of the lane.
 */
const marker = ',"hash":"'
const tailBytes = marker.length + zeroHash.length + 2

/** Adds the hash and returns the line to write. `body` is the canonical JSON of the record without `hash`. */
export function sealLine(body: string): { readonly line: string; readonly hash: string } {
  const hash = digest('sha256', body)
  return { line: `${body.slice(0, -1)}${marker}${hash}"}\n`, hash }
}

type ParsedLine =
  | { readonly ok: true; readonly record: AuditRecord }
  /** `record` is set if the line could be parsed in spite of the problem. */
  | { readonly ok: false; readonly wrong: 'form' | 'hash' | 'canonical'; readonly record?: AuditRecord }

/** Checks a line (without its newline) as far as possible without the lines before and after it. */
export function parseSealedLine(bytes: Buffer): ParsedLine {
  const record = parseRecord(bytes.toString('utf8'))
  const written = record && writtenOf(record)
  if (!record || !written) return { ok: false, wrong: 'form' }
  const end = bytes.length - tailBytes
  const stored = bytes.toString('latin1', end)
  if (end < 1 || stored !== `${marker}${record.hash}"}`) return { ok: false, wrong: 'form', record }
  const body = Buffer.concat([bytes.subarray(0, end), closing])
  if (digest('sha256', body) !== record.hash) return { ok: false, wrong: 'hash', record }
  if (!written.equals(body)) return { ok: false, wrong: 'canonical', record }
  return { ok: true, record }
}

const closing = Buffer.from('}')

/** The canonical bytes of a record without `hash`. Undefined if the record is nested too deeply to be Toolway's. */
function writtenOf({ hash: _, ...record }: AuditRecord): Buffer | undefined {
  try {
    return Buffer.from(canonical(record))
  } catch {
    return undefined
  }
}

export interface Verifier {
  /** The ID of the key: the start of the SHA-256 of its DER form. */
  readonly id: string
  readonly pem: string
  /** Whether a record's signature is valid. Takes the record without `hash`; `signature` itself is not signed. */
  verifies(record: Readonly<Record<string, unknown>>): boolean
}

export interface Signer extends Verifier {
  /** Signs a record without `signature` and `hash`. */
  sign(record: Readonly<Record<string, unknown>>): string
  /** The MAC of a string. Used for the file `head`, which changes too often to be signed. */
  mac(text: string): string
}

// The prefix of the seed in the PKCS #8 form of an Ed25519 key (RFC 8410).
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')
/** Precedes the signed bytes, so that signatures cannot be confused with other uses of the key. */
const purpose = 'toolway audit 1\n'

/** Derives the keys from the secret, so that only the secret has to be stored. */
export function signerOf(secret: Buffer | string): Signer {
  const derive = (info: string) => Buffer.from(hkdfSync('sha256', secret, '', info, 32))
  const seed = derive('toolway audit: signing')
  const key = createPrivateKey({ key: Buffer.concat([pkcs8, seed]), format: 'der', type: 'pkcs8' })
  // Node takes four times as long with a key as bytes: it throws an error inside and catches it.
  const head = createSecretKey(derive('toolway audit: head'))
  const verifier = verifierOf(createPublicKey(key))
  return {
    ...verifier,
    sign: (record) => sign(null, signed(record), key).toString('base64url'),
    mac: (text) => createHmac('sha256', head).update(text).digest('hex'),
  }
}

function verifierOf(publicKey: KeyObject | string): Verifier {
  const key = typeof publicKey === 'string' ? createPublicKey(publicKey) : publicKey
  return {
    id: digest('sha256', key.export({ format: 'der', type: 'spki' })).slice(0, 16),
    pem: key.export({ format: 'pem', type: 'spki' }) as string,
    verifies: ({ signature, ...record }) =>
      typeof signature === 'string' && verify(null, signed(record), key, Buffer.from(signature, 'base64url')),
  }
}

/** The keys in a public key file. After the secret is replaced, the old key is still needed for older records. */
export const verifiersOf = (pem: string): Verifier[] =>
  (pem.match(/-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g) ?? []).flatMap((block) => {
    try {
      return [verifierOf(block)]
    } catch {
      return []
    }
  })

const signed = (record: object): Buffer => Buffer.from(purpose + canonical(record))

/** Max size of recorded arguments, in characters of JSON. */
export const maxArguments = fixedLimits.auditArgumentCharacters.value
/** How many characters of longer arguments are kept. */
const maxStart = 4 * 1024
const maxText = 512

/** Max bytes per line, even if every character needs six bytes. */
export const maxLine = 128 * 1024

/** Truncates a long string. The appended hash tells it apart from other strings with the same beginning. */
export function bounded(text: string, maxLength = maxText): string {
  if (text.length <= maxLength) return text
  const mark = `… (${text.length} characters, SHA-256 ${digest('sha256', text)})`
  return text.slice(0, maxLength - mark.length).toWellFormed() + mark
}

/** A record's position in the chain, which is known only when the record is written. */
export type RecordPosition = Omit<ChainedRecord, 'hash'>

export type RecordBody = (position: RecordPosition) => string

/** Max characters for names that are often long: rule names, and tool names, which may be URIs. */
const maxRule = 1024
const maxTool = 2048
/** Max number of listed attempts. The configuration never allows more. */
const maxAttempts = 32
/** How many names, and how many subjects, are remembered as they are written. */
const maxRemembered = 4096

type Redact = (text: string) => string

/**
 * Writes the bodies of event records: members in canonical order, to avoid sorting. Names are redacted, truncated and
 * quoted. Remembers the result, since names repeat, and what the records about one subject have in common.
 */
export class EventFormat {
  readonly #redactor: () => Redact
  #redact: Redact | undefined
  readonly #names = new Map<string, string>()
  readonly #subjects = new Map<string, WrittenSubject>()

  /** `redactor` returns the present function, a new one whenever the secrets changed. */
  constructor(redactor: () => Redact) {
    this.#redactor = redactor
  }

  /** The body of the record before an operation; `described` is canonical JSON. */
  begin(event: AuditBegin, described?: string): RecordBody {
    const about = this.#subjectOf(event)
    return ({ time, seq, prev }) =>
      `${about.who}${described === undefined ? '' : `,"arguments":${described}`},"call":${plain(event.call)}` +
      `${about.kind}${about.operation}${parentOf(event)},"phase":"before","prev":"${prev}"${about.principal}` +
      `,"seq":${seq}${about.server}${this.#name(event, ',"target":', event.target)},"time":"${time}"${about.tool}`
  }

  /** The body of the record after an operation. */
  end(event: AuditEnd): RecordBody {
    const about = this.#subjectOf(event)
    return ({ time, seq, prev }) =>
      about.who +
      (event.approval === undefined ? '' : `,"approval":"${event.approval}"`) +
      (event.approver === undefined ? '' : this.#name(event, ',"approver":', event.approver)) +
      (event.asked === undefined ? '' : this.#name(event, ',"asked":', event.asked)) +
      (event.attempts === undefined ? '' : `,"attempts":${JSON.stringify(event.attempts.slice(-maxAttempts))}`) +
      (event.available === undefined ? '' : `,"available":${event.available}`) +
      `,"call":${plain(event.call)}` +
      (event.code === undefined ? '' : `,"code":${plain(event.code)}`) +
      `,"decision":"${event.decision}"` +
      (event.detail === undefined ? '' : this.#name(event, ',"detail":', event.detail)) +
      (event.findings === undefined ? '' : `,"findings":${JSON.stringify(event.findings)}`) +
      `,"is_error":${event.is_error}${about.kind},"latency_ms":${JSON.stringify(event.latency_ms)}` +
      `${about.operation}${parentOf(event)},"phase":"after","prev":"${prev}"${about.principal}` +
      (event.reason === undefined ? '' : this.#name(event, ',"reason":', event.reason)) +
      (event.requested === undefined ? '' : `,"requested":${event.requested}`) +
      (event.returned === undefined ? '' : `,"returned":${event.returned}`) +
      (event.rule === undefined ? '' : this.#name(event, ',"rule":', event.rule, maxRule)) +
      `,"seq":${seq}${about.server}` +
      (event.suppressed === undefined ? '' : `,"suppressed":${event.suppressed}`) +
      (event.target === undefined ? '' : this.#name(event, ',"target":', event.target)) +
      `,"time":"${time}"` +
      (event.tokens === undefined ? '' : `,"tokens":${event.tokens}`) +
      about.tool
  }

  #subjectOf(event: AuditSubject): WrittenSubject {
    const redact = this.#redactor()
    if (redact !== this.#redact) {
      this.#redact = redact
      this.#names.clear()
      this.#subjects.clear()
    }
    const { address, agent, anonymous, kind, operation, principal, served, server, tool, write } = event
    const key = tool ?? operation
    const known = this.#subjects.get(key)
    if (known && isSameSubject(known.subject, event)) return known
    const written = {
      subject: event,
      who:
        (address === undefined ? '{' : `{"address":${plain(address)},`) +
        `"agent":${this.#quote(agent, maxText)}${anonymous ? ',"anonymous":true' : ''}`,
      kind: kind === undefined ? '' : `,"kind":"${kind}"`,
      operation: `,"operation":${this.#quote(operation, maxText)}`,
      principal: `,"principal":${this.#quote(principal, maxText)}`,
      server: this.#name(event, ',"served":', served) + this.#name(event, ',"server":', server),
      tool: `${this.#name(event, ',"tool":', tool, maxTool)},"write":${write}}`,
    }
    if (key.length <= maxText) setBounded(this.#subjects, key, written, maxRemembered)
    return written
  }

  #name({ brief }: AuditSubject, lead: string, text: string | undefined, maxLength = maxText): string {
    return text === undefined ? '' : lead + this.#quote(text, brief ? maxText : maxLength)
  }

  #quote(name: string, maxLength: number): string {
    const known = this.#names.get(name)
    if (known !== undefined) return known
    // If the redactor fails, drop the name but write the rest of the record.
    let clean = 'dropped'
    try {
      // Redact before truncating, because half a secret would not be recognised.
      clean = this.#redact?.(name) ?? clean
    } catch {}
    const quoted = JSON.stringify(bounded(clean, maxLength))
    if (name.length <= maxText && clean.length <= maxText) setBounded(this.#names, name, quoted, maxRemembered)
    return quoted
  }
}

/** The parts of a record that depend on its subject only, and the subject that they were written for. */
interface WrittenSubject {
  readonly subject: AuditSubject
  /** The address and the agent. */
  readonly who: string
  readonly kind: string
  readonly operation: string
  readonly principal: string
  /** The server, after the tool's name for callers. */
  readonly server: string
  /** The tool, and whether the operation writes. */
  readonly tool: string
}

/** Whether records about two subjects with one tool differ only in their calls. */
const isSameSubject = (one: AuditSubject, other: AuditSubject): boolean =>
  one.agent === other.agent &&
  one.principal === other.principal &&
  one.anonymous === other.anonymous &&
  one.address === other.address &&
  one.operation === other.operation &&
  one.kind === other.kind &&
  one.server === other.server &&
  one.served === other.served &&
  one.tool === other.tool &&
  one.write === other.write &&
  one.brief === other.brief

const parentOf = ({ parent }: AuditSubject): string => (parent === undefined ? '' : `,"parent":${plain(parent)}`)

const plain = (text: string): string => JSON.stringify(bounded(text))

/** The recorded arguments as canonical JSON. Undefined if none are recorded; `"dropped"` if the redactor fails. */
export function argumentsJson(
  args: AuditBegin['arguments'],
  describe: (args: Record<string, unknown>) => unknown,
  brief = false,
): string | undefined {
  if (args === undefined) return undefined
  try {
    const described = describe(args)
    return described === undefined ? undefined : truncatedJson(described, brief)
  } catch {
    return '"dropped"'
  }
}

function truncatedJson(described: unknown, brief: boolean): string {
  try {
    return canonical(described, { characters: brief ? maxText : maxArguments, depth: defaultMaxDepth - 1 })
  } catch (error) {
    if (!(error instanceof TooLong)) throw error
    const text = JSON.stringify(described)
    const start = text.slice(0, brief ? maxText : maxStart).toWellFormed()
    const sha256 = digest('sha256', text)
    return canonical({ truncated: true, bytes: Buffer.byteLength(text), sha256, start } satisfies TruncatedArguments)
  }
}
