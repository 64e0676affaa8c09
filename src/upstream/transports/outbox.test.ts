import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { createOutbox } from './outbox.ts'

/** A pipe that takes what it is given when it is told to, at once or write by write. */
function pipeWith(taking: 'at once' | 'when told') {
  const writes: string[] = []
  const told: ((error?: Error) => void)[] = []
  const take = (bytes: string, done: (error?: Error) => void) => {
    writes.push(bytes)
    if (taking === 'at once') done()
    else told.push(done)
  }
  const pipe = new Writable({
    write: (chunk, _, done) => take(String(chunk), done),
    writev: (chunks, done) => take(chunks.map(({ chunk }) => String(chunk)).join(''), done),
  }).on('error', () => {})
  const outbox = createOutbox(pipe, (reject) => reject('not read'))
  const send = (text: string, signal?: AbortSignal) =>
    outbox.send(Buffer.from(text), signal).then(
      () => 'taken',
      (reason) => reason,
    )
  return { pipe, outbox, send, writes, told: () => told.shift() }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('F12: a message that the pipe took at once was sent, whatever becomes of the pipe before it says so', async () => {
  const { pipe, send, writes } = pipeWith('at once')
  const sent = send('{"a":1}')
  pipe.destroy(new Error('gone'))
  expect(await sent).toBe('taken')
  expect(writes).toEqual(['{"a":1}\n'])
})

test('F12: no two messages share a write, so that one that failed takes no other with it', async () => {
  const { send, writes, told } = pipeWith('when told')
  const sends = [send('a'), send('b'), send('c')]
  expect(writes).toEqual(['a\n'])
  told()?.()
  await turn()
  expect(writes).toEqual(['a\n', 'b\n'])
  told()?.(new Error('broken pipe'))
  expect(await Promise.all(sends)).toEqual(['taken', 'not read', 'not read'])
  expect(writes).toEqual(['a\n', 'b\n'])
})

test('F10, F12: what is called off while it waits is never written', async () => {
  const { outbox, send, writes, told } = pipeWith('when told')
  const caller = new AbortController()
  const first = send('a')
  const second = send('b', caller.signal)
  const third = send('c')
  expect(outbox.waiting).toBe(4)
  caller.abort('nobody waits')
  expect(outbox.waiting).toBe(3)
  told()?.()
  await turn()
  told()?.()
  expect(await Promise.all([first, second, third])).toEqual(['taken', 'nobody waits', 'taken'])
  expect(writes).toEqual(['a\n', 'c\n'])
})

test('F12: closing refuses what waits and whatever comes, and not what is being written', async () => {
  const { outbox, send, told } = pipeWith('when told')
  const sends = [send('a'), send('b')]
  outbox.close()
  sends.push(send('c'))
  told()?.()
  expect(await Promise.all(sends)).toEqual(['taken', 'not read', 'not read'])
})
