import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openAuditLog } from '../../../audit/write/audit-log.ts'
import { systemClock } from '../../../core/clock.ts'
import { silentLog } from '../../../core/log.ts'
import { keptAuditKey } from '../../../stores/secret-file.ts'
import { folder } from '../../folder.fixture.ts'
import { toolway } from '../../kit.fixture.ts'

describe('F11: toolway audit verify', () => {
  async function recorded(at: string, key = 'a secret of at least sixteen characters') {
    await using audit = await openAuditLog({
      folder: at,
      sync: 'all',
      unrecordedReads: 'refuse',
      retainMs: 1e12,
      key,
      describe: (given) => given,
      clock: systemClock,
      log: silentLog,
    })
    for (let number = 0; number < 20; number++) {
      const subject = { call: `c${number}`, agent: 'dev', principal: 'local', operation: 'call_tool', write: false }
      audit.begin({ ...subject, arguments: { number } })
      await audit.end({ ...subject, decision: 'ALLOW', is_error: false, latency_ms: 1 })
    }
  }

  test('exits with 0 if the log is intact, otherwise with 1, and reports problems with their places', async () => {
    await using place = await folder({ 'toolway.json': { audit: { path: './audit' } } })
    await recorded(join(place.cwd, 'audit'))
    const well = await toolway(['audit', 'verify'], place)
    expect(well).toMatchObject({ code: 0, stderr: '' })
    expect(well.stdout).toMatch(/^✓ 4\d records in 1 lane of audit: intact\n +checked with the key next to the log/)
    const given = await toolway(['audit', 'verify', '--public-key', 'audit/audit.pub', '--json'], place)
    expect(JSON.parse(given.stdout)).toMatchObject({ ok: true, trust: 'public key', problems: [] })

    const file = join(place.cwd, 'audit', '1', '000000000001.jsonl')
    writeFileSync(file, readFileSync(file, 'utf8').replace('"number":7', '"number":8'))
    const wrong = await toolway(['audit', 'verify', '--path', 'audit'], { ...place, columns: 100 })
    expect(wrong.code).toBe(1)
    expect(wrong.stdout.replace(/\x1b\[\d+m/g, '')).toMatch(
      /^✗ \d+ problems? in 4\d records .*:\n +1\/000000000001\.jsonl:\d+ \(record \d+\): \S/,
    )
    expect(wrong.stderr).toContain('Checking lane 1')
    expect(await toolway(['audit', 'verify', '--public-key', 'nowhere'], place)).toMatchObject({ code: 2 })
    expect((await toolway(['audit', 'verify', '--public-key', 'toolway.json'], place)).stderr).toContain(
      'no public key',
    )
    const json = await toolway(['audit', 'verify', '--json'], place)
    expect(json.code).toBe(1)
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, problems: [{ lane: '1' }] })
  })

  test('the secret of the gateway is used, another one is detected, and no key is created', async () => {
    await using place = await folder({ 'toolway.json': { audit: { path: './audit' }, stores: { path: './data' } } })
    await recorded(join(place.cwd, 'audit'), await keptAuditKey(join(place.cwd, 'data')))
    const own = await toolway(['audit', 'verify', '--json'], place)
    expect(JSON.parse(own.stdout)).toMatchObject({ ok: true, trust: 'secret' })
    expect(own.stderr).toContain('audit-marks')
    rmSync(join(place.cwd, 'audit'), { recursive: true })
    expect(await toolway(['audit', 'verify'], place)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('no log'),
    })
    expect((await toolway(['audit', 'verify', '--path', 'audit'], place)).code).toBe(1)
    await recorded(join(place.cwd, 'audit'), await keptAuditKey(join(place.cwd, 'data')))
    writeFileSync(join(place.cwd, 'data', 'audit-key'), 'quite another secret of that length')
    expect((await toolway(['audit', 'verify'], place)).code).toBe(1)
    rmSync(join(place.cwd, 'data', 'audit-key'))
    expect((await toolway(['audit', 'verify'], place)).stdout).toContain('the key next to the log')
    expect(existsSync(join(place.cwd, 'data', 'audit-key'))).toBe(false)
  })

  test('the other commands read the same log while it is written', async () => {
    await using place = await folder({ 'toolway.json': { audit: { path: './audit' } } })
    await recorded(join(place.cwd, 'audit'))
    const [, tail, query] = await Promise.all([
      recorded(join(place.cwd, 'audit')),
      toolway(['audit', 'tail', '--json', '-n', '3'], place),
      toolway(['audit', 'query', '--json', '--text', 'number=19'], place),
    ])
    expect(tail.stdout.trimEnd().split('\n')).toHaveLength(3)
    expect(JSON.parse(query.stdout).rows.length).toBeGreaterThanOrEqual(1)
    const later = await toolway(['audit', 'query', '--json', '--text', 'number=19'], place)
    expect(JSON.parse(later.stdout).rows).toHaveLength(2)
    expect((await toolway(['audit', 'verify'], place)).code).toBe(0)
  })
})
