import { join } from 'node:path'
import { recordsIn } from '../../../src/audit/audit.fixture.ts'
import { listLanes } from '../../../src/audit/log-files.ts'
import type { AfterRecord, AuditRecord, BeforeRecord } from '../../../src/audit/record.ts'

/** All records of a gateway whose state lies in `folder`, of all its writers. */
export function auditRecords(folder: string): AuditRecord[] {
  const path = join(folder, 'state', 'audit')
  return listLanes(path).flatMap((lane) => recordsIn(path, lane))
}

const own: readonly string[] = ['gateway_start', 'gateway_stop']

/** Operations that ended, without the start and stop of the gateway. */
export const endedIn = (folder: string): AfterRecord[] =>
  auditRecords(folder).filter(
    (record): record is AfterRecord => record.phase === 'after' && !own.includes(record.operation),
  )

export const begunIn = (folder: string): BeforeRecord[] =>
  auditRecords(folder).filter((record): record is BeforeRecord => record.phase === 'before')
