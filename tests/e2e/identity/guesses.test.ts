import { expect, test } from 'vitest'
import { startToolway } from '../../fixtures/toolway.ts'

test('B6: of 200 wrong tokens at once a gateway looks at auth.maxFailures, and the right one is let in meanwhile', async () => {
  await using toolway = await startToolway({ auth: { maxFailures: 3, failureInterval: '10m' } })
  const status = async (token: string) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: '*/*' }
    const response = await fetch(toolway.url, { method: 'POST', headers, body: '{}' })
    await response.arrayBuffer()
    return response.status
  }
  const statuses = await Promise.all(Array.from({ length: 200 }, (_, count) => status(`guess-${count}`)))
  expect(Map.groupBy(statuses, (one) => one).get(401)).toHaveLength(3)
  expect(Map.groupBy(statuses, (one) => one).get(429)).toHaveLength(197)
  expect([401, 429]).not.toContain(await status(toolway.token))
})
