import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { WorkTurns } from './turns.ts'

/** Turns by a clock of the test. `use` waits for a turn and then works for 10 ms; `turns` lists whose turns began. */
function turnsWith({ contended = true, active = 1 } = {}) {
  const clock = createManualClock()
  const pauses: number[] = []
  const turns: string[] = []
  /** Work takes time of its own, in which no pause ends. */
  let workedMs = 0
  const work = new WorkTurns({
    now: () => clock.monotonic() + workedMs,
    pause: (ms) =>
      new Promise((resolve) => {
        pauses.push(ms)
        clock.after(ms, () => resolve(active))
      }),
  })
  const use = (caller: string, workMs = 10) =>
    work
      .take(caller, () => contended)
      .then(() => {
        turns.push(caller)
        workedMs += workMs
      })
  /** Lets time pass by the millisecond, and in between everything happen that is due. */
  const pass = async (ms: number) => {
    for (let left = ms; left >= 0; left--) {
      for (let count = 0; count < 5; count++) await clock.pass(0)
      if (left > 0) await clock.pass(1)
    }
  }
  return { use, pass, turns, pauses, clock }
}

test('V6: two large bodies of different callers are handled one after the other, with a pause between them', async () => {
  const { use, pass, turns } = turnsWith()
  void use('anna')
  void use('bert')
  await pass(9)
  expect(turns).toEqual(['anna'])
  await pass(1)
  expect(turns).toEqual(['anna', 'bert'])
})

test("V6: on a busy loop, a caller's next large body waits nine times as long as the last one took", async () => {
  const { use, pass, turns } = turnsWith()
  void use('anna')
  void use('anna')
  await pass(89)
  expect(turns).toEqual(['anna'])
  await pass(1)
  expect(turns).toEqual(['anna', 'anna'])
})

test("V6: many large bodies of one caller do not delay another caller's first one", async () => {
  const { use, pass, turns } = turnsWith()
  for (let count = 0; count < 8; count++) void use('anna')
  await pass(0)
  void use('bert')
  await pass(10)
  expect(turns).toEqual(['anna', 'bert'])
})

test.each([
  { title: 'no other caller waits', contended: false, active: 1 },
  { title: 'the loop has time to spare', contended: true, active: 0.4 },
])('V6: the next large body of a caller waits only as long as the last one took if $title', async (setup) => {
  const { use, pass, turns } = turnsWith(setup)
  for (let count = 0; count < 3; count++) void use('anna')
  await pass(10)
  expect(turns).toEqual(['anna', 'anna'])
  await pass(10)
  expect(turns).toEqual(['anna', 'anna', 'anna'])
})

test('V6: a large body that took long is followed by pauses of at most 250 ms', async () => {
  const { use, pass, pauses } = turnsWith()
  void use('anna', 5_000)
  await pass(1)
  expect(pauses).toEqual([250, 250])
})

test('V6: nothing waits after the last large body', async () => {
  const { use, pass, clock } = turnsWith()
  void use('anna')
  await pass(200)
  expect(clock.pending).toBe(0)
})
