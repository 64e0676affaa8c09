import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { InFlight } from './in-flight.ts'

test('an InFlight map returns the values that it forgets, in their order', () => {
  const calls = new InFlight<number, string>()
  for (const id of [3, 1, 2]) calls.set(id, `call ${id}`)
  expect([calls.take(1), calls.take(1), calls.get(3), calls.has(1)]).toEqual(['call 1', undefined, 'call 3', false])
  for (const call of calls.values()) if (call === 'call 3') calls.take(2)
  expect([...calls.values()]).toEqual(['call 3'])
  expect(calls.size).toBe(1)
})

/** How many full collections the same calls cause when each is in a map while it runs. */
function fullCollections(map: string): number {
  const program = `
    const calls = ${map}
    const take = (id) => (calls.take ? calls.take(id) : calls.delete(id))
    calls.set(-1, {})
    // Until the map's table is in the old generation.
    for (let made = 0; made < 1e6; made++) globalThis.garbage = { made }
    take(-1)
    for (let id = 0; id < 4e5; id++) {
      calls.set(id, { payload: Array.from({ length: 20 }, (_, n) => [n]) })
      take(id - 16)
    }`
  const source = `import { InFlight } from '${import.meta.resolve('./in-flight.ts')}'\n${program}`
  const flags = ['--trace-gc', '--max-semi-space-size=2', '--no-allocation-site-pretenuring', '--input-type=module']
  return (
    execFileSync(process.execPath, [...flags, '--eval', source], { encoding: 'utf8' }).split('Mark-Compact').length - 1
  )
}

test('F14: calls in an InFlight map are garbage as soon as they end, and those in a Map only in a full collection', () => {
  expect(3 * fullCollections('new InFlight()')).toBeLessThan(fullCollections('new Map()'))
})
