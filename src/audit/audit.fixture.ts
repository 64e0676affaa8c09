import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { AuditBegin, AuditEnd } from '../core/audit.ts'
import { silentLog } from '../core/log.ts'
import { listSegments } from './log-files.ts'
import type { AuditRecord } from './record.ts'
import { type VerifyReport, verifyAudit } from './verify/verify.ts'
import { type AuditLog, type AuditLogOptions, openAuditLog } from './write/audit-log.ts'
import { type FileSystem, nodeFileSystem } from './write/segment-file.ts'

export const secret = 'a secret of these tests alone'

/** A log in this folder; by default with a manual clock and a small reserve. */
export const openLog = (folder: string, changes: Partial<AuditLogOptions> = {}): Promise<AuditLog> =>
  openAuditLog({
    folder,
    sync: 'writes',
    unrecordedReads: 'allow',
    retainMs: 90 * 24 * 60 * 60 * 1000,
    key: secret,
    describe: (given) => given,
    clock: createManualClock(),
    log: silentLog,
    reserveBytes: 16 * 1024,
    ...changes,
  })

export const beginOf = (changes: Partial<AuditBegin> = {}): AuditBegin => ({
  call: 'c1',
  agent: 'dev',
  principal: 'test',
  operation: 'call_tool',
  kind: 'tool',
  server: 'files',
  tool: 'read',
  write: false,
  ...changes,
})

export const endOf = (changes: Partial<AuditEnd> = {}): AuditEnd => ({
  ...beginOf(),
  decision: 'ALLOW',
  is_error: false,
  latency_ms: 1.5,
  ...changes,
})

/** All records of a lane, as they stand in its files. */
export const recordsIn = (folder: string, lane = '1'): AuditRecord[] =>
  listSegments(folder, lane).flatMap((file) =>
    readFileSync(join(folder, lane, file), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as AuditRecord),
  )

export const operationsIn = (folder: string, lane = '1'): string[] =>
  recordsIn(folder, lane).map(({ operation, phase }) => (phase ? `${operation} ${phase}` : operation))

export const verify = (folder: string): Promise<VerifyReport> => verifyAudit({ folder, key: secret })

/** A file system whose operations a test lets fail. */
export interface UnreliableFiles extends FileSystem {
  /** Writes fail with this code once this many more bytes were taken. */
  writesFail: { readonly code: string; bytes: number } | undefined
  syncFails: string | undefined
  truncateFails: string | undefined
  openFails: string | undefined
  /** Each sync waits until it is let go. */
  hold: boolean
  readonly held: (() => void)[]
  syncs: number
}

const failure = (code: string) => Object.assign(new Error(`${code}: made to fail`), { code })

export function unreliableFiles(): UnreliableFiles {
  const files: UnreliableFiles = {
    ...nodeFileSystem,
    writesFail: undefined,
    syncFails: undefined,
    truncateFails: undefined,
    openFails: undefined,
    hold: false,
    held: [],
    syncs: 0,
    openSync: (path, flags, mode) => {
      if (files.openFails) throw failure(files.openFails)
      return nodeFileSystem.openSync(path, flags, mode)
    },
    writeSync: (fd, bytes, offset, length, position) => {
      const limit = files.writesFail
      if (!limit || position !== null) return nodeFileSystem.writeSync(fd, bytes, offset, length, position)
      const take = Math.min(length, limit.bytes)
      if (take === 0) throw failure(limit.code)
      limit.bytes -= take
      return nodeFileSystem.writeSync(fd, bytes, offset, take, position)
    },
    ftruncateSync: (fd, bytes) => {
      if (files.truncateFails) throw failure(files.truncateFails)
      nodeFileSystem.ftruncateSync(fd, bytes)
    },
    fdatasync: async (fd) => {
      files.syncs++
      if (files.hold) await new Promise<void>((resolve) => files.held.push(resolve))
      if (files.syncFails) throw failure(files.syncFails)
      await nodeFileSystem.fdatasync(fd)
    },
  }
  return files
}
