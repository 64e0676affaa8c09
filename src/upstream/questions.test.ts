import { expect, test } from 'vitest'
import type { Peer } from '../core/call.ts'
import { Json } from '../core/json.ts'
import { silentLog } from '../core/log.ts'
import { createQuestions } from './questions.ts'
import type { Transport } from './transports/transport.ts'

test('G3: a hundred questions that are answered at once all get their answers, however slowly the server takes them', async () => {
  const taken = Promise.withResolvers<void>()
  const told: unknown[] = []
  const send: Transport['send'] = ({ body }) => {
    told.push(JSON.parse(String(body)).id)
    return taken.promise
  }
  const questions = createQuestions({ send } as Transport, silentLog)
  const peer = { ask: async () => Json.of({ model: 'small' }) } as unknown as Peer
  const ids = [...Array(100).keys()]
  for (const id of ids) questions.answer({ id, method: 'sampling/createMessage', params: undefined }, () => [peer])
  await expect.poll(() => told).toEqual(ids)
  taken.resolve()
})
