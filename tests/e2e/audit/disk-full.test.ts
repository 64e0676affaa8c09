import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { verifyAudit } from '../../../src/audit/verify/verify.ts'
import { type AuditLog, openAuditLog } from '../../../src/audit/write/audit-log.ts'
import type { AuditBegin, AuditEnd } from '../../../src/core/audit.ts'
import { silentLog } from '../../../src/core/log.ts'
import { createManualClock } from '../../fixtures/clock.ts'
import { mountSmallDisk, type SmallDisk } from '../../fixtures/small-disk.ts'

const key = 'a secret of this story alone'
const mounted = await mountSmallDisk('512k')
const disk = typeof mounted === 'string' ? undefined : mounted
const why = typeof mounted === 'string' ? mounted : undefined

afterAll(() => disk?.[Symbol.asyncDispose]())

const subject = { call: 'c', agent: 'dev', principal: 'test', operation: 'call_tool', tool: 'do' } as const
const beginOf = (write: boolean): AuditBegin => ({ ...subject, write, arguments: { text: 'x'.repeat(500) } })
const endOf = (write: boolean, decision: AuditEnd['decision'] = 'ALLOW'): AuditEnd => ({
  ...subject,
  write,
  decision,
  is_error: false,
  latency_ms: 1,
})

// On other people's machines nobody may mount anything; where we test for all, silence would be a lie.
if (why !== undefined && process.env.CI) {
  test('a small disk can be mounted', () => expect.fail(why))
}

describe.skipIf(why !== undefined)(`F11: a full disk${why === undefined ? '' : ` (skipped: ${why})`}`, () => {
  const clock = createManualClock()
  // Without a disk, everything here is skipped.
  const { path, fill, free } = disk ?? ({} as SmallDisk)
  let audit: AuditLog
  let folder: string

  const open = (unrecordedReads: 'allow' | 'refuse') => {
    folder = join(path, unrecordedReads)
    return openAuditLog({
      folder,
      sync: 'writes',
      unrecordedReads,
      retainMs: 24 * 60 * 60 * 1000,
      key,
      describe: (given) => given,
      clock,
      log: silentLog,
      reserveBytes: 64 * 1024,
    })
  }

  const call = async (write: boolean) => {
    audit.begin(beginOf(write))
    await audit.end(endOf(write))
  }

  /** The page that the file already has takes a few more records. */
  const untilRefused = () => {
    for (let attempts = 0; attempts < 100; attempts++) {
      try {
        audit.begin(beginOf(true))
      } catch (error) {
        return error
      }
    }
    return undefined
  }

  test.each(['allow', 'refuse'] as const)(
    'F11: writes fail closed, reads as configured (%s), and it recovers automatically',
    async (reads) => {
      audit = await open(reads)
      await call(true)
      await call(false)
      audit.begin(beginOf(true))
      fill()

      expect(untilRefused()).toMatchObject({
        code: 'AUDIT_UNAVAILABLE',
        message: expect.stringMatching(/nothing was sent/),
      })
      // What was under way ends in the reserve; a denial too.
      await audit.end(endOf(true))
      await audit.end(endOf(true, 'DENY'))
      expect(audit.status()).toMatchObject({ recording: false })
      expect(untilRefused()).toMatchObject({ code: 'AUDIT_UNAVAILABLE' })

      if (reads === 'allow') await call(false)
      else await expect(call(false)).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' })

      clock.advance(100)
      expect(() => audit.begin(beginOf(true))).toThrow(/nothing was sent/)
      free()
      clock.advance(100)
      await call(true)
      await call(false)
      expect(audit.status()).toMatchObject({ recording: true })
      await audit[Symbol.asyncDispose]()

      const report = await verifyAudit({ folder, key })
      expect(report.problems).toEqual([])
      expect(report.lanes).toMatchObject([{ outages: 1, torn: undefined }])
      rmSync(folder, { recursive: true })
    },
  )

  test('F11: a write that has run while even the reserve is used up says so', async () => {
    audit = await open('allow')
    for (let under = 0; under < 600; under++) audit.begin({ ...beginOf(true), arguments: {} })
    fill()
    const ends = await Promise.allSettled(Array.from({ length: 600 }, () => audit.end(endOf(true))))
    const failed = ends.filter(({ status }) => status === 'rejected')
    expect(failed.length).toBeGreaterThan(0)
    expect(ends.length - failed.length).toBeGreaterThan(100)
    expect(failed[0]).toMatchObject({
      reason: { code: 'AUDIT_UNAVAILABLE', message: expect.stringMatching(/HAS run/) },
    })
    free()
    clock.advance(100)
    await call(true)
    await audit[Symbol.asyncDispose]()
    expect((await verifyAudit({ folder, key })).problems).toEqual([])
    rmSync(folder, { recursive: true })
  })
})
