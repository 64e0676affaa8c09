import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { connectCaller } from '../../fixtures/callers.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { startToolway } from '../../fixtures/toolway.ts'

const secret = 'correct-horse-battery-9'

test('F11, B6, B7: a flood of failed calls neither fills the disk nor leaves a secret there, and is counted', async () => {
  await using folder = await temporaryFolder()
  const server = { url: 'http://127.0.0.1:9/mcp', headers: { Authorization: `Bearer ${secret}` } }
  {
    await using toolway = await startToolway({ audit: { path: folder.path }, mcpServers: { far: server } })
    await using caller = await connectCaller('v2', toolway)
    const uri = `postgres://me:hunter2hunter2@host/${secret}`
    await expect(caller.request('resources/read', { uri })).rejects.toThrow()
    const call = () => caller.call(`nowhere__${secret}`, { text: 'x'.repeat(15_000) })
    // In waves: a busy machine lets some of hundreds of connections at once wait for too long.
    for (let wave = 0; wave < 2; wave++) await Promise.allSettled(Array.from({ length: 100 }, call))
  }
  const lane = join(folder.path, '1')
  const segments = readdirSync(lane).filter((name) => name.endsWith('.jsonl'))
  const text = segments.map((name) => readFileSync(join(lane, name), 'utf8')).join('')
  expect(text).not.toMatch(/correct-horse|hunter2/)
  expect(text).toContain('postgres://me:[redacted]@host/[redacted]')
  expect(text.length).toBeLessThan(400 * 1024)
  const records = text.split('\n').filter((line) => line.includes('_not_found"') || line.includes('"refusals"'))
  const refusals = records.map((line) => JSON.parse(line) as { operation: string; suppressed?: number })
  const told = refusals.map(({ operation, suppressed = 0 }) => (operation === 'refusals' ? 0 : 1) + suppressed)
  expect(told.reduce((sum, count) => sum + count, 0)).toBe(201)
})
