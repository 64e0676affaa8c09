import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { Outbox } from './stdio.ts'

/** A pipe that accepts writes at once, or one by one when told to. */
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
  const outbox = new Outbox(pipe, (reject) => reject('not read'))
  const send = (text: string, signal?: AbortSignal) =>
    outbox.send(Buffer.from(text), signal).then(
      () => 'taken',
      (reason) => reason,
    )
  return { pipe, outbox, send, writes, told: () => told.shift() }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('F12: a message that the pipe accepted at once counts as sent, even if the pipe breaks afterwards', async () => {
  const { pipe, send, writes } = pipeWith('at once')
  const sent = send('{"a":1}')
  await turn()
  pipe.destroy(new Error('gone'))
  expect(await sent).toBe('taken')
  expect(writes).toEqual(['{"a":1}\n'])
})

test('F12: a pipe that is gone at the end of the turn has taken nothing', async () => {
  const { pipe, send, writes } = pipeWith('at once')
  const sent = send('a')
  pipe.destroy(new Error('gone'))
  expect(await sent).toBe('not read')
  expect(writes).toEqual([])
})

test('F14: messages of one turn leave in one write, in order', async () => {
  const { send, writes } = pipeWith('at once')
  expect(await Promise.all([send('a'), send('b'), send('c')])).toEqual(['taken', 'taken', 'taken'])
  expect(writes).toEqual(['a\nb\nc\n'])
})

test('F12: no more share a write than a pipe takes whole or not at all, so that one that fails takes no other with it', async () => {
  const { send, writes, told } = pipeWith('when told')
  const long = 'b'.repeat(3_000)
  const sends = [send('a'), send(long), send('c'.repeat(1_095)), send('d'.repeat(9_000)), send('e')]
  const lengths = () => writes.map(({ length }) => length)
  await turn()
  expect(lengths()).toEqual([3_003])
  told()?.()
  await turn()
  expect(lengths()).toEqual([3_003, 1_096])
  told()?.()
  await turn()
  expect(lengths()).toEqual([3_003, 1_096, 9_001])
  told()?.(new Error('broken pipe'))
  expect(await Promise.all(sends)).toEqual(['taken', 'taken', 'taken', 'not read', 'not read'])
  expect(writes.at(-1)).toBe(`${'d'.repeat(9_000)}\n`)
})

test('F10, F12: a message that is cancelled while it waits is never written', async () => {
  const { outbox, send, writes, told } = pipeWith('when told')
  const caller = new AbortController()
  const first = send('a')
  const early = send('x', AbortSignal.abort('gone already'))
  await turn()
  const second = send('b', caller.signal)
  const third = send('c')
  expect(outbox.waiting).toBe(4)
  caller.abort('nobody waits')
  expect(outbox.waiting).toBe(3)
  told()?.()
  await turn()
  told()?.()
  expect(await Promise.all([first, early, second, third])).toEqual(['taken', 'gone already', 'nobody waits', 'taken'])
  expect(writes).toEqual(['a\n', 'c\n'])
})

test('F12: closing refuses waiting and later messages, but not the one being written', async () => {
  const { outbox, send, told } = pipeWith('when told')
  const sends = [send('a')]
  await turn()
  sends.push(send('b'))
  outbox.close()
  sends.push(send('c'))
  told()?.()
  expect(await Promise.all(sends)).toEqual(['taken', 'not read', 'not read'])
})
