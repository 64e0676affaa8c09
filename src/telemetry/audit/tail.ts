import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { maxLine } from './bounds.ts'
import type { AuditRecord } from './record.ts'
import { openLine } from './seal-line.ts'

/** How a segment ends. */
export interface Tail {
  /** The last record that is whole; none if there is no such record near the end. */
  readonly last: AuditRecord | undefined
  /** Where that record's line ends. */
  readonly end: number
  /** How long the file is; what stands after `end` is no record. */
  readonly bytes: number
  /** What stands there is at most one record that was torn while it was written: it never counted. */
  readonly torn: boolean
}

const windowBytes = 4 * maxLine

/** Looks at the end of a segment, however long it is. */
export function tailOf(path: string): Tail {
  const { bytes: text, size } = lastBytes(path)
  const base = size - text.length
  const newline = text.lastIndexOf(10)
  const fragment = newline + 1 < text.length
  const first = lineBefore(text, base, newline)
  if (first?.record) return { last: first.record, end: base + newline + 1, bytes: size, torn: fragment }
  if (!first) return { last: undefined, end: 0, bytes: size, torn: base === 0 }
  // The last line is no record. Where nothing stands behind it, it is itself what was torn.
  const second = fragment ? undefined : lineBefore(text, base, first.start - 1)
  if (second?.record) return { last: second.record, end: base + first.start, bytes: size, torn: true }
  return { last: undefined, end: 0, bytes: size, torn: base === 0 && first.start === 0 && !fragment }
}

/** The line that ends with the newline at `newline`; none if there is no such line in this part of the file. */
function lineBefore(text: Buffer, base: number, newline: number): { start: number; record?: AuditRecord } | undefined {
  if (newline < 0) return undefined
  const start = newline === 0 ? 0 : text.lastIndexOf(10, newline - 1) + 1
  if (start === 0 && base > 0) return undefined
  const opened = openLine(text.subarray(start, newline))
  return opened.ok ? { start, record: opened.record } : { start }
}

/** The first record of a segment; none if it is not whole. */
export function firstRecordOf(path: string): AuditRecord | undefined {
  const fd = openSync(path, 'r')
  try {
    const buffer = Buffer.alloc(maxLine)
    const text = buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, 0))
    const opened = openLine(text.subarray(0, Math.max(0, text.indexOf(10))))
    return opened.ok ? opened.record : undefined
  } finally {
    closeSync(fd)
  }
}

function lastBytes(path: string): { bytes: Buffer; size: number } {
  const fd = openSync(path, 'r')
  try {
    const { size } = fstatSync(fd)
    const buffer = Buffer.alloc(Math.min(size, windowBytes))
    return { bytes: buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, size - buffer.length)), size }
  } finally {
    closeSync(fd)
  }
}
