import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createBodyReader, createTurns } from './bodies.ts'
import type { ReceivedRequest } from './request.ts'

/** Turns by a clock of the test. `use` waits for a turn and then works for 10 ms; `turns` lists whose turns began. */
function turnsWith({ contended = true, active = 1 } = {}) {
  const clock = createManualClock()
  const pauses: number[] = []
  const turns: string[] = []
  /** Work takes time of its own, in which no pause ends. */
  let workedMs = 0
  const wait = createTurns({
    now: () => clock.monotonic() + workedMs,
    pause: (ms) =>
      new Promise((resolve) => {
        pauses.push(ms)
        clock.after(ms, () => resolve(active))
      }),
  })
  const use = (caller: string, workMs = 10) =>
    wait(caller, () => contended).then(() => {
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

test('V6: a large body whose client disconnects before its turn is given up at once', async () => {
  const size = 100_000
  const limits = { maxBody: size, maxValues: size, maxInFlight: 8 * size, maxInFlightPerCaller: 4 * size }
  const bodies = createBodyReader(limits)
  const send = () => {
    const parts = { headers: { 'content-type': 'application/json' }, socket: { remoteAddress: '::1' }, complete: true }
    const request = Object.assign(new PassThrough(), parts)
    const response = new EventEmitter()
    const asked = { request: request as unknown as ReceivedRequest, response: response as ServerResponse }
    const reading = Promise.resolve(bodies.read({ ...asked, identity: undefined }))
    request.end(Buffer.alloc(size, ' '))
    return { reading, disconnect: () => response.emit('close') }
  }
  const [first, second, third] = [send(), send(), send()]
  expect(await first.reading).toHaveLength(size)
  second.disconnect()
  await expect(second.reading).rejects.toMatchObject({ status: 400 })
  expect(await third.reading).toHaveLength(size)
})
