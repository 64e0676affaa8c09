import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { endWith } from './deadline.ts'

test('F10: work ends as it ends, and leaves no listener behind', async () => {
  const { signal } = new AbortController()
  await expect(endWith(signal, Promise.resolve('done'))).resolves.toBe('done')
  await expect(endWith(signal, Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('F10: the signal ends the waiting for work that does not listen, before it begins and in the middle', async () => {
  const controller = new AbortController()
  const waiting = endWith(controller.signal, new Promise(() => {}))
  controller.abort(new Error('too late'))
  await expect(waiting).rejects.toThrow('too late')
  await expect(endWith(controller.signal, new Promise(() => {}))).rejects.toThrow('too late')
})

test('work that fails after its waiter gave up causes no unhandled rejection', async () => {
  const unhandled: unknown[] = []
  const listen = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', listen)
  const gone = AbortSignal.abort(new Error('gone'))
  await expect(endWith(gone, Promise.reject(new Error('late')))).rejects.toThrow('gone')
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', listen)
  expect(unhandled).toEqual([])
})
