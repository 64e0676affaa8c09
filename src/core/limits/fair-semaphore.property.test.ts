import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { FairSemaphore } from './fair-semaphore.ts'

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

interface Work {
  readonly caller: string
  readonly stop: AbortController
  slot?: Disposable
  isOver: boolean
}

const step = fc.record({
  does: fc.constantFrom('take', 'take', 'leave', 'abort'),
  caller: fc.constantFrom('anna', 'bert', 'cleo'),
  pick: fc.nat(50),
})

test('B7: FairSemaphore exceeds no limit, keeps nobody waiting who could go on, and loses no slot', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 4 }),
      fc.array(step, { maxLength: 60 }),
      async (slots, perCaller, steps) => {
        const semaphore = new FairSemaphore({ slots, perCaller })
        const all: Work[] = []
        const holding = () => all.filter(({ slot, isOver }) => slot && !isOver)
        const waiting = () => all.filter(({ slot, isOver }) => !slot && !isOver)
        const heldBy = (caller: string) => holding().filter((work) => work.caller === caller).length
        const leave = (work: Work | undefined) => {
          if (!work) return
          work.isOver = true
          work.slot?.[Symbol.dispose]()
        }
        const abort = (work: Work | undefined) => {
          if (!work) return
          work.isOver = true
          work.stop.abort(new Error('called off'))
        }
        for (const { does, caller, pick } of steps) {
          if (does === 'leave') leave(holding()[pick % Math.max(1, holding().length)])
          if (does === 'abort') abort(waiting()[pick % Math.max(1, waiting().length)])
          if (does === 'take') {
            const work: Work = { caller, stop: new AbortController(), isOver: false }
            all.push(work)
            semaphore.take(caller, work.stop.signal).then(
              (slot) => {
                work.slot = slot
              },
              () => assert.ok(work.isOver),
            )
          }
          await settled()
          assert.equal(semaphore.waiting, waiting().length)
          assert.ok(holding().length <= slots)
          for (const name of ['anna', 'bert', 'cleo']) assert.ok(heldBy(name) <= perCaller)
          if (holding().length < slots) for (const one of waiting()) assert.equal(heldBy(one.caller), perCaller)
        }
        while (holding().length > 0) {
          leave(holding()[0])
          await settled()
        }
        assert.equal(waiting().length, 0)
      },
    ),
    runs(30, 1_000),
  )
})
