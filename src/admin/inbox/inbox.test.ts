import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { Rejections } from '../../runtime/rejections.ts'
import type { InboxItem, InboxView } from '../contract.ts'
import { Dismissals, Inbox, type InboxEntry, type InboxSource } from './inbox.ts'

let open: AsyncDisposableStack
let folder: string
beforeEach(async () => {
  open = new AsyncDisposableStack()
  folder = open.adopt(await mkdtemp(join(tmpdir(), 'toolway-inbox-')), (path) =>
    // Repeat: dismissals of items that have ended are removed from the file in the background.
    rm(path, { recursive: true, maxRetries: 10 }),
  )
})
afterEach(() => open.disposeAsync())

const entry = (id: string, more: Partial<InboxEntry> = {}): InboxEntry => ({
  ...{ id, kind: 'server', severity: 'warning', title: id, detail: '', link: null, actions: [], revision: '1' },
  ...more,
})

function opened(redact = (text: string) => text) {
  const clock = createManualClock()
  const log = createKeptLog()
  const inbox = open.use(new Inbox(new Dismissals(folder, log), redact, clock, log))
  let items: InboxEntry[] = []
  let changed = () => {}
  const source: InboxSource = {
    items: () => items,
    onChange(listener) {
      changed = listener
      return { [Symbol.dispose]() {} }
    },
  }
  inbox.add(source)
  const set = (...next: InboxEntry[]) => {
    items = next
  }
  const ids = () => inbox.view().items.map(({ id }) => id)
  return { inbox, clock, log, set, ids, changed: () => changed() }
}

describe('V7: the inbox', () => {
  test('lists the most urgent first, then the newest, with what is known of when it began', () => {
    const { inbox, set, ids, clock } = opened()
    set(
      entry('a', { since: 5 }),
      entry('b', { since: 9 }),
      entry('c', { severity: 'critical' }),
      entry('d', { severity: 'info' }),
    )
    expect(ids()).toEqual(['c', 'b', 'a', 'd'])
    const since = inbox.view().items[0]?.since
    clock.advance(5_000)
    expect(inbox.view().items[0]?.since).toBe(since)
  })

  test('text is redacted, bounded, and invisible characters are spelt out', () => {
    const { inbox, set } = opened((text) => text.replace('hunter2', '[redacted]'))
    set(entry('a', { title: 'x\u202ey', detail: `hunter2 ${'z'.repeat(5_000)}` }))
    const [item] = inbox.view().items
    expect(item?.title).toBe('x\\u{202e}y')
    expect(item?.detail).toMatch(/^\[redacted\] z+…$/)
    expect(item?.detail.length).toBeLessThan(1_100)
  })

  test('there are bounds, and a source that fails does not hide the others', () => {
    const { inbox, set, log } = opened()
    set(...Array.from({ length: 250 }, (_, index) => entry(`${index}`)))
    inbox.add({
      items() {
        throw new Error('broken')
      },
    })
    expect(inbox.view()).toMatchObject({ items: { length: 200 }, left: 50 })
    expect(log.lines).toHaveLength(1)
  })

  test('approvals come first, the one that ends soonest at the top; they cannot be dismissed or hide the rest', async () => {
    const { inbox, set, ids } = opened()
    const approval = (id: string, until: number) => entry(id, { kind: 'approval', until })
    set(entry('a', { severity: 'critical' }), approval('b', 20), approval('c', 10))
    expect(ids()).toEqual(['c', 'b', 'a'])
    await expect(inbox.dismiss('b', 'token')).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
    expect(ids()).toEqual(['c', 'b', 'a'])
    set(...Array.from({ length: 300 }, (_, index) => approval(`p${index}`, index)), entry('a'))
    expect(inbox.view()).toMatchObject({ items: { length: 101, 100: { id: 'a' } }, left: 200, dismissed: 0 })
  })

  test('a dismissed item returns when it changes, and when it ended and occurs again; other processes know', async () => {
    const { inbox, set, ids } = opened()
    set(entry('a'), entry('b'))
    await inbox.dismiss('a', 'token')
    expect(inbox.view()).toMatchObject({ items: [{ id: 'b' }], dismissed: 1 })
    const other = opened()
    other.set(entry('a'))
    expect(other.ids()).toEqual([])
    set(entry('a', { revision: '2' }), entry('b'))
    expect(ids()).toEqual(['a', 'b'])
    set(entry('a'), entry('b'))
    await inbox.dismiss('a', 'token')
    set(entry('b'))
    inbox.view()
    set(entry('a'), entry('b'))
    expect(ids()).toEqual(['a', 'b'])
    await expect(inbox.dismiss('unknown', 'token')).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  test('a process does not cancel the dismissal of an item that ended only there, but of a shared one', async () => {
    const [one, other] = [opened(), opened()]
    const items = [entry('server:x'), entry('key:y', { kind: 'key' })]
    for (const { set, ids } of [one, other]) {
      set(...items)
      ids()
    }
    for (const { id } of items) await one.inbox.dismiss(id, 'token')
    expect(other.ids()).toEqual([])
    other.set()
    other.ids()
    await expect.poll(one.ids).toEqual(['key:y'])
    one.clock.advance(8 * 86_400_000)
    expect(one.ids()).toContain('server:x')
  })

  test('an item that ended in the process in which it was dismissed stays dismissed in others until it ends there', async () => {
    const [one, other, late] = [opened(), opened(), opened()]
    const advance = () => {
      for (const { clock } of [one, other, late]) clock.advance(1_000)
    }
    const item = entry('server:x')
    for (const { set } of [one, other, late]) set(item)
    other.ids()
    await one.inbox.dismiss(item.id, 'token')
    const file = () => readFile(join(folder, 'inbox.json'), 'utf8')
    advance()
    one.set()
    one.ids()
    await expect.poll(file).toContain('endedAt')
    advance()
    expect([one.ids(), other.ids(), late.ids()]).toEqual([[], [], []])
    // It goes on elsewhere, so a relapse is not news.
    await expect.poll(file).not.toContain('endedAt')
    one.set(item)
    expect(one.ids()).toEqual([])
    for (const process of [one, other, late]) {
      advance()
      process.set()
      process.ids()
      await expect.poll(file).toContain('endedAt')
    }
    advance()
    for (const { set } of [one, other, late]) set(item)
    expect([one.ids(), other.ids(), late.ids()]).toEqual([[item.id], [item.id], [item.id]])
  })

  test('an item that looks different in another process is dismissed separately', async () => {
    const [one, other] = [opened(), opened()]
    one.set(entry('server:x', { revision: 'down' }))
    other.set(entry('server:x', { revision: 'degraded' }))
    await one.inbox.dismiss('server:x', 'token')
    expect(other.ids()).toEqual(['server:x'])
    await other.inbox.dismiss('server:x', 'token')
    expect([one.ids(), other.ids()]).toEqual([[], []])
  })

  test('a damaged list of dismissed items hides nothing', async () => {
    await writeFile(join(folder, 'inbox.json'), '{"version":1,"dismissed":[{"id":')
    const { set, ids, log } = opened()
    set(entry('a'))
    expect(ids()).toEqual(['a'])
    expect(log.lines).toHaveLength(1)
  })

  test('listeners get each change once, immediately or within a second, with the new items', async () => {
    const { inbox, set, clock, changed } = opened()
    const told: { view: InboxView; added: readonly InboxItem[] }[] = []
    set(entry('a'))
    const listening = inbox.onChange((view, added) => void told.push({ view, added }))
    set(entry('a'), entry('b'))
    changed()
    await Promise.resolve()
    expect(told.map(({ added }) => added.map(({ id }) => id))).toEqual([['b']])
    clock.advance(3_000)
    expect(told).toHaveLength(1)
    set(entry('c'))
    clock.advance(1_000)
    expect(told[1]).toMatchObject({ view: { items: [{ id: 'c' }] }, added: [{ id: 'c' }] })
    listening[Symbol.dispose]()
    set()
    clock.advance(5_000)
    expect(told).toHaveLength(2)
  })
})

test('V7: rejected requests are counted by cause and address for an hour, in bounded memory', () => {
  const clock = createManualClock()
  const rejections = new Rejections(clock)
  for (let number = 0; number < 1_000; number++) {
    rejections.count({ code: 'AUTH_REQUIRED', address: `192.0.2.${number % 250}` })
  }
  rejections.count({ code: 'AUTH_REQUIRED', address: '192.0.2.1' })
  rejections.count({ code: 'DENIED_BY_POLICY', detail: 'origin: https://evil.example', address: '192.0.2.9' })
  rejections.count({ code: 'INVALID_ARGUMENTS', malformed: true })
  expect(rejections.recent()).toMatchObject([
    { cause: 'AUTH_REQUIRED', count: 1_001, addresses: { length: 5, 0: ['other addresses', 744] } },
    { cause: 'origin', count: 1, example: 'https://evil.example', addresses: [['192.0.2.9', 1]] },
  ])
  clock.advance(3_600_000)
  expect(rejections.recent()).toEqual([])
})
