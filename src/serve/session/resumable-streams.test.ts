import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createTestConnection, type TestConnection } from './connection.fixture.ts'
import { EventStore } from './event-store.ts'
import { absenceMs, SessionStreams } from './resumable-streams.ts'

function setUp(primes = true, bounds?: ConstructorParameters<typeof EventStore>[0]) {
  const clock = createManualClock()
  const store = new EventStore(bounds)
  const streams = new SessionStreams({ events: store.open('anna'), primes, clock })
  return { clock, store, streams }
}

const bytes = (text: string) => Buffer.from(text)
const messages = ({ received }: TestConnection) => received.map(({ message }) => message).filter(Boolean)
const lastId = ({ received }: TestConnection) => received.at(-1)?.id ?? ''

/** Comes back behind the last event of a connection that was lost. */
function comeBack(streams: SessionStreams, lost: TestConnection) {
  const connection = createTestConnection()
  return { connection, outcome: streams.resume(lastId(lost), () => connection) }
}

describe('B2: the stream of an answer', () => {
  test('begins with an event to resume from, and numbers all events', () => {
    const { streams } = setUp()
    const connection = createTestConnection()
    const feed = streams.open(connection, () => {})
    feed.send(bytes('one'))
    feed.end(bytes('answer'))
    expect(connection.received.map(({ message }) => message)).toEqual(['', 'one', 'answer'])
    expect(new Set(connection.received.map(({ id }) => id)).size).toBe(3)
    expect(connection.ended).toBe(true)
  })

  test('has no empty event for a client that does not support one, but ids all the same', () => {
    const { streams } = setUp(false)
    const connection = createTestConnection()
    const feed = streams.open(connection, () => {})
    expect(feed.resumable).toBe(false)
    feed.send(bytes('one'))
    expect(feed.resumable).toBe(true)
    connection.cut()
    feed.end(bytes('answer'))
    const { connection: next } = comeBack(streams, connection)
    expect(next.received.map(({ message }) => message)).toEqual(['answer'])
  })

  test('continues where its client lost it, and ends with the response', () => {
    const { streams } = setUp()
    const first = createTestConnection()
    const feed = streams.open(first, () => {})
    feed.send(bytes('one'))
    first.cut()
    expect(feed.send(bytes('two'))).toBe(true)
    const { connection: second, outcome } = comeBack(streams, first)
    expect(outcome).toBe('resumed')
    feed.send(bytes('three'))
    feed.end(bytes('answer'))
    expect(messages(second)).toEqual(['two', 'three', 'answer'])
    expect(second.ended).toBe(true)
  })

  test('can be fetched repeatedly after its end, and then reports that it is over', () => {
    const { streams } = setUp()
    const first = createTestConnection()
    const feed = streams.open(first, () => {})
    first.cut()
    feed.end(bytes('answer'))
    for (let time = 0; time < 2; time++) {
      const { connection } = comeBack(streams, first)
      expect([messages(connection), connection.ended]).toEqual([['answer'], true])
      expect(comeBack(streams, connection).outcome).toBe('over')
    }
  })

  test('that ended without a response reports that it is over', () => {
    const { streams } = setUp()
    const first = createTestConnection()
    const feed = streams.open(first, () => {})
    feed.end()
    expect(comeBack(streams, first).outcome).toBe('over')
  })

  test('moves to the newest connection, even if the former one seems to be there', () => {
    const { streams } = setUp()
    const first = createTestConnection()
    const feed = streams.open(first, () => {})
    first.deafen()
    feed.send(bytes('unheard'))
    const { connection: second } = comeBack(streams, first)
    const { connection: third } = comeBack(streams, first)
    feed.end(bytes('answer'))
    expect([messages(second), second.ended]).toEqual([['unheard'], true])
    expect(messages(third)).toEqual(['unheard', 'answer'])
  })

  test('of a client that stays away is given up after five minutes, and not before', () => {
    const { streams, clock } = setUp()
    let abandoned = 0
    const first = createTestConnection()
    streams.open(first, () => abandoned++)
    first.cut()
    clock.advance(absenceMs - 1)
    const { connection: second } = comeBack(streams, first)
    clock.advance(absenceMs)
    expect(abandoned).toBe(0)
    second.cut()
    clock.advance(absenceMs - 1)
    expect(abandoned).toBe(0)
    clock.advance(1)
    expect(abandoned).toBe(1)
  })

  test('leaves no timer behind', () => {
    const { streams, clock } = setUp()
    const first = createTestConnection()
    const feed = streams.open(first, () => {})
    first.cut()
    feed.end(bytes('answer'))
    const second = createTestConnection()
    streams.open(second, () => {})
    second.cut()
    streams[Symbol.dispose]()
    expect(clock.pending).toBe(0)
  })

  test.each(['', 'x', 'p1', 'p1-', 'p1-99', 'p9-0', 'g9-0', 'p01-1', 'p1-1e0', 'p1--1', '__proto__-1', 'p1-0\n'])(
    'cannot be found by %j',
    (id) => {
      const { streams } = setUp()
      streams.open(createTestConnection(), () => {})
      const asked = () => {
        throw new Error('a connection was asked for')
      }
      expect(streams.resume(id, asked)).toBe('unknown')
    },
  )

  test("cannot be found by another session's event", () => {
    const { store, streams, clock } = setUp()
    const other = new SessionStreams({ events: store.open('anna'), primes: true, clock })
    const connection = createTestConnection()
    streams.open(connection, () => {}).end(bytes('secret'))
    expect(other.resume('p1-0', createTestConnection)).toBe('unknown')
    other.open(createTestConnection(), () => {})
    const mine = createTestConnection()
    other.resume('p1-0', () => mine)
    expect(messages(mine)).toEqual([])
  })
})

describe('B2: the stream for what belongs to no request', () => {
  test('is resumed with what was sent and not received, and with what came in the meantime', () => {
    const { streams } = setUp()
    const first = createTestConnection()
    streams.listen(first)
    streams.tell(bytes('one'))
    first.deafen()
    streams.tell(bytes('two'))
    first.cut()
    streams.tell(bytes('three'))
    const { connection: second } = comeBack(streams, first)
    streams.tell(bytes('four'))
    expect([messages(first), messages(second)]).toEqual([['one'], ['two', 'three', 'four']])
  })

  test('does not bring back what another stream of the same client has brought', () => {
    const { streams } = setUp()
    const first = createTestConnection()
    streams.listen(first)
    const second = createTestConnection()
    streams.listen(second)
    streams.tell(bytes('one'))
    first.cut()
    const { connection: third } = comeBack(streams, first)
    streams.tell(bytes('two'))
    expect([messages(second), messages(third)]).toEqual([['one'], ['two']])
  })

  test('waits for a client without a stream: each message once, and not without bound', () => {
    const { streams } = setUp()
    const again = bytes('again')
    for (let time = 0; time < 3; time++) expect(streams.tell(again)).toBe(true)
    const large = Buffer.alloc(1024 * 1024, 0x78)
    expect(streams.tell(large)).toBe(false)
    let waiting = 1
    while (streams.tell(bytes(`message ${waiting}`))) waiting++
    expect(waiting).toBe(2_048)
    const connection = createTestConnection()
    streams.listen(connection)
    expect(messages(connection)).toHaveLength(waiting)
    expect(messages(connection)[0]).toBe('again')
    expect(streams.tell(large)).toBe(true)
  })

  test('is over with the session', () => {
    const { streams, store } = setUp()
    const connection = createTestConnection()
    streams.listen(connection)
    streams.tell(bytes('one'))
    streams[Symbol.dispose]()
    expect(connection.ended).toBe(true)
    expect(streams.tell(bytes('two'))).toBe(false)
    expect(store.bytes).toBe(0)
  })
})

describe('B2: a message that calls may be waiting for', () => {
  test('goes on the stream of a call that is open, or of the next one, if there is no GET stream', () => {
    const { streams } = setUp()
    const [first, second] = [createTestConnection(), createTestConnection()]
    const feed = streams.open(first, () => {})
    expect(streams.tell(bytes('question'), true)).toBe(true)
    expect(messages(first)).toEqual(['question'])
    feed.end(bytes('answer'))
    streams.tell(bytes('news'))
    expect(streams.tell(bytes('another question'), true)).toBe(true)
    streams.open(second, () => {})
    expect(messages(second)).toEqual(['another question'])
    const listening = createTestConnection()
    streams.listen(listening)
    expect(messages(listening)).toEqual(['news'])
  })

  test('goes on the GET stream if there is one', () => {
    const { streams } = setUp()
    const [call, listening] = [createTestConnection(), createTestConnection()]
    streams.open(call, () => {})
    streams.listen(listening)
    streams.tell(bytes('question'), true)
    expect([messages(call), messages(listening)]).toEqual([[], ['question']])
  })
})

describe('B10: the streams of a session that another replica had before', () => {
  const former = () => {
    const clock = createManualClock()
    return new SessionStreams({ events: new EventStore().open('anna'), primes: true, clock, first: clock.now() })
  }

  test('a client that resumes the stream outside requests gets all messages since', () => {
    const streams = former()
    streams.tell(bytes('news'))
    const connection = createTestConnection()
    expect(streams.resume('g1-5', () => connection)).toBe('resumed')
    streams.tell(bytes('more'))
    expect(messages(connection)).toEqual(['news', 'more'])
    connection.cut()
    streams.tell(bytes('last'))
    const again = comeBack(streams, connection)
    expect([again.outcome, messages(again.connection)]).toEqual(['resumed', ['last']])
  })

  test('an answer is gone with the one that was to give it', () => {
    expect(former().resume('p1-5', createTestConnection)).toBe('unknown')
  })
})
