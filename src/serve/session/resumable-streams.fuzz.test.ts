import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { createTestConnection, type TestConnection } from './connection.fixture.ts'
import { EventStore } from './event-store.ts'
import { type ResumableStream, SessionStreams } from './resumable-streams.ts'

const bytes = (text: string) => Buffer.from(text)
const messages = ({ received }: TestConnection) => received.map(({ message }) => message).filter(Boolean)

/** What a client knows of one stream: it holds on to its last id as the standard of event streams says. */
interface Reader {
  connection: TestConnection
  id: string
  readonly heard: string[]
}

describe('B2: with any loss of connections', () => {
  const step = fc.record({
    kind: fc.constantFrom('open', 'listen', 'send', 'tell', 'answer', 'deafen', 'choke', 'cut', 'resume', 'resume'),
    which: fc.nat(7),
  })

  test('every message arrives once, in its order, and each answer ends its stream', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const streams = new SessionStreams({
          events: new EventStore().open('anna'),
          primes: true,
          clock: createManualClock(),
        })
        const calls: { feed: ResumableStream; reader: Reader; sent: string[]; over: boolean }[] = []
        const listeners: Reader[] = []
        const told: string[] = []
        let count = 0

        const readers = () => [...calls.map(({ reader }) => reader), ...listeners]
        const fresh = (): Reader => ({ connection: createTestConnection(), id: '', heard: [] })
        const read = (reader: Reader) => {
          reader.heard.push(...messages(reader.connection))
          reader.id = reader.connection.received.at(-1)?.id ?? reader.id
        }
        const resume = (reader: Reader) => {
          read(reader)
          const connection = createTestConnection()
          const outcome = streams.resume(reader.id, () => connection)
          reader.connection = connection
          return outcome
        }

        for (const { kind, which } of steps) {
          const call = calls[which % Math.max(1, calls.length)]
          const reader = readers()[which % Math.max(1, readers().length)]
          const text = `${kind} ${++count}`
          if (kind === 'open' && calls.length < 4) {
            const reader = fresh()
            calls.push({ feed: streams.open(reader.connection, () => {}), reader, sent: [], over: false })
          } else if (kind === 'listen' && listeners.length < 3) {
            const reader = fresh()
            streams.listen(reader.connection)
            listeners.push(reader)
          } else if (kind === 'tell') {
            streams.tell(bytes(text))
            told.push(text)
          } else if (kind === 'send' && call && !call.over) {
            call.feed.send(bytes(text))
            call.sent.push(text)
          } else if (kind === 'answer' && call && !call.over) {
            call.feed.end(bytes(text))
            call.sent.push(text)
            call.over = true
          } else if (kind === 'deafen') reader?.connection.deafen()
          else if (kind === 'choke') reader?.connection.choke()
          else if (kind === 'cut') reader?.connection.cut()
          else if (kind === 'resume' && reader) resume(reader)
        }

        for (const { feed, reader, sent, over } of calls) {
          resume(reader)
          if (!over) {
            feed.end(bytes('the end'))
            sent.push('the end')
          }
          read(reader)
          expect(reader.heard).toEqual(sent)
          expect(streams.resume(reader.id, createTestConnection)).toBe('over')
        }
        if (listeners.length === 0) {
          const reader = fresh()
          streams.listen(reader.connection)
          listeners.push(reader)
        }
        for (const reader of listeners) resume(reader)
        const heard = listeners.map((reader) => {
          read(reader)
          return reader.heard
        })
        expect(heard.flat().toSorted()).toEqual(told.toSorted())
        const place = (text: string) => Number(text.split(' ')[1])
        for (const each of heard) expect(each).toEqual(each.toSorted((a, b) => place(a) - place(b)))
      }),
      runs(100, 5_000),
    )
  })
})
