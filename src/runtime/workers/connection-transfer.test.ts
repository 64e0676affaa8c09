import { expect, test } from 'vitest'
import type { HandedConnection } from '../../core/cluster.ts'
import type { RpcPort } from '../../lib/port-rpc.ts'
import { createConnectionTransfer } from './connection-transfer.ts'

const connection = (text = ''): HandedConnection => ({
  handle: { close() {}, readStart() {}, readStop() {} },
  bytes: Buffer.from(text),
})

/** Two ends of a channel. `cut` lets no more messages through. */
function channel() {
  const listeners: ((message: unknown, handle?: unknown) => void)[] = []
  let isOpen = true
  const end = (own: number): RpcPort => ({
    send(message, handle) {
      if (isOpen) queueMicrotask(() => listeners[1 - own]?.(message, handle))
      return isOpen
    },
    onMessage(listener) {
      listeners[own] = listener
    },
  })
  const cut = () => {
    isOpen = false
  }
  return { one: end(0), other: end(1), cut }
}

const refuse = () => false

test('B10: a connection is handed over with its request, or refused', async () => {
  const { one, other } = channel()
  const taken: string[] = []
  const { offer } = createConnectionTransfer(one, refuse)
  createConnectionTransfer(other, (to, { bytes }) => taken.push(`${to} ${bytes}`) === 1)
  expect(await offer('b', connection('POST'))).toBe(true)
  expect(await offer('b', connection('again'))).toBe(false)
  expect(taken).toEqual(['b POST', 'b again'])
})

test('B10: a connection counts as taken if the other end dies without an answer, and as refused if it never got it', async () => {
  const { one, other, cut } = channel()
  const { offer, lost } = createConnectionTransfer(one, refuse)
  createConnectionTransfer(other, () => new Promise(() => {}))
  const unanswered = offer('b', connection())
  cut()
  expect(await offer('b', connection())).toBe(false)
  lost()
  expect(await unanswered).toBe(true)
})

test('B10: at most four connections are on their way', async () => {
  const { one, other } = channel()
  const { offer } = createConnectionTransfer(one, refuse)
  const answers: ((isTaken: boolean) => void)[] = []
  createConnectionTransfer(other, () => new Promise((resolve) => answers.push(resolve)))
  const offers = Array.from({ length: 5 }, () => offer('b', connection()))
  expect(await offers[4]).toBe(false)
  for (const answer of answers) answer(true)
  expect(await Promise.all(offers.slice(0, 4))).toEqual([true, true, true, true])
})
