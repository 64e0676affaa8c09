import { hash as digest } from 'node:crypto'
import { canonical } from '../../lib/canonical-json.ts'
import { parseRecord } from './parse-record.ts'
import { type AuditRecord, noHash } from './record.ts'

/**
 * A record on disk is one line. Its members stand in canonical order (RFC 8785), except that `hash` is the last one:
 *
 *     {"agent":"dev",…,"prev":"<64 hex>","seq":7,…,"write":false,"hash":"<64 hex>"}⏎
 *
 * `hash` is the SHA-256, in lower-case hex, of the UTF-8 bytes of the line up to, but without, `,"hash":"`, followed
 * by one `}`: that is the canonical JSON of the record without `hash`. Since `prev` is part of it, each hash stands
 * for all records of the lane up to there.
 */
const marker = ',"hash":"'
const tailBytes = marker.length + noHash.length + 2

/** A record's text as it is stored, and its hash. `body` is its canonical JSON without `hash`. */
export function sealLine(body: string): { readonly line: string; readonly hash: string } {
  const hash = digest('sha256', body)
  return { line: `${body.slice(0, -1)}${marker}${hash}"}\n`, hash }
}

export type OpenedLine =
  | { readonly ok: true; readonly record: AuditRecord }
  /** `record` where the line could be read all the same. */
  | { readonly ok: false; readonly wrong: 'form' | 'hash' | 'canonical'; readonly record?: AuditRecord }

/** Checks one line, newline excluded, as far as it can be checked alone. */
export function openLine(bytes: Buffer): OpenedLine {
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

/** The canonical JSON of a record without its hash; none where it nests too deeply for one of ours. */
function writtenOf({ hash: _, ...record }: AuditRecord): Buffer | undefined {
  try {
    return Buffer.from(canonical(record))
  } catch {
    return undefined
  }
}
