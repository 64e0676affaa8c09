import { describe, expect, test } from 'vitest'
import { corpus } from './corpus/index.fixture.ts'
import { repair } from './repair.ts'

describe('S4: broken answers are repaired', () => {
  test.each(corpus.map((one) => [one.way, one.broken, one] as const))('%s: %j', (_way, broken, one) => {
    const found = repair(broken, one.accepts && { accepts: one.accepts })
    expect(found).toHaveProperty('value')
    if (!('value' in found)) return
    expect(JSON.stringify(found.value)).toBe(JSON.stringify(one.means))
    expect(found.repairs).not.toEqual([])
    if (one.complete !== undefined) expect(found.complete).toBe(one.complete)
  })
})

test('S4: the corpus is broken in more than thirty ways', () => {
  expect(new Set(corpus.map(({ way }) => way)).size).toBeGreaterThan(30)
  for (const { broken } of corpus) if (!/^["{[]/.test(broken)) expect(() => JSON.parse(broken)).toThrow()
})
