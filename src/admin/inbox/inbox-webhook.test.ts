import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { type Delivery, type Receiver, receiver, silent, status } from '../../tools/sinks/receiver.fixture.ts'
import type { InboxItem, InboxView } from '../contract.ts'
import { createInboxWebhook } from './inbox-service.ts'

let open: AsyncDisposableStack
beforeEach(() => {
  open = new AsyncDisposableStack()
})
afterEach(() => open.disposeAsync())

const item = (id: string, more: Partial<InboxItem> = {}): InboxItem => ({
  ...{ id, kind: 'server', severity: 'warning', title: id, detail: '', since: 1, link: null, actions: [] },
  ...more,
})

/** An inbox with a webhook. `add` reports items that are new. */
function webhookAt({ url }: Receiver, items: readonly InboxItem[] = []) {
  const clock = createManualClock()
  const log = createKeptLog()
  const listeners = new Set<(view: InboxView, added: readonly InboxItem[]) => void>()
  const view = (): InboxView => ({ items: [...items], dismissed: 0, left: 0 })
  const inbox = {
    view,
    onChange(listener: (view: InboxView, added: readonly InboxItem[]) => void) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
  }
  const settings = { url: url as string | undefined }
  const isOwn = ({ id }: InboxItem) => id !== 'elsewhere'
  const webhook = open.use(
    createInboxWebhook({ inbox, isOwn, url: () => settings.url, version: '1.2.3', clock, log, random: () => 1 }),
  )
  const add = (...added: InboxItem[]) => {
    for (const listener of listeners) listener(view(), added)
  }
  return { clock, log, add, settings, webhook, listening: () => listeners.size > 0 }
}

const ids = ({ body }: Delivery) => (body.items as InboxItem[]).map(({ id }) => id)
const key = ({ headers }: Delivery) => headers['idempotency-key']

describe('V7: inbox.webhook', () => {
  test('gets what is open at the start, then what is new, each once; not what other processes post', async () => {
    const hook = open.use(await receiver(status(200)))
    const { add } = webhookAt(hook, [item('a'), item('elsewhere')])
    const first = await hook.delivery(1)
    expect(first.body).toMatchObject({ source: 'toolway', version: '1.2.3', items: [item('a')] })
    add(item('b', { kind: 'approval', until: 9 }), item('elsewhere'))
    expect(ids(await hook.delivery(2))).toEqual(['b'])
    add(item('elsewhere'))
    add(item('c', { title: '<!channel> & <b>' }))
    const third = await hook.delivery(3)
    expect(ids(third)).toEqual(['c'])
    // Chats take the text, in which these characters would notify everyone or make a link.
    expect(third.body.text).toBe('&lt;!channel&gt; &amp; &lt;b&gt;')
    expect(new Set([key(first), key(third)]).size).toBe(2)
  })

  test('a delivery that failed is repeated with the same key, and what came meanwhile follows in one', async () => {
    const hook = open.use(await receiver(status(503), status(200)))
    const { clock, log, add } = webhookAt(hook, [item('a')])
    await until(() => log.lines.length > 0, { what: 'the pause' })
    add(item('b'))
    add(item('c'))
    await clock.pass(10_000)
    const [first, second, third] = [await hook.delivery(1), await hook.delivery(2), await hook.delivery(3)]
    expect(second.body).toEqual(first.body)
    expect(key(second)).toBe(key(first))
    expect(ids(third)).toEqual(['b', 'c'])
  })

  test('a refused delivery is given up, and later ones are made', async () => {
    const hook = open.use(await receiver(status(400), status(200)))
    const { log, add } = webhookAt(hook, [item('a')])
    await until(() => log.lines.length > 0, { what: 'the warning' })
    expect(log.lines[0]?.facts).toMatchObject({ reason: 'HTTP 400', items: 1 })
    add(item('b'))
    expect(ids(await hook.delivery(2))).toEqual(['b'])
  })

  test('items that wait are bounded: the newest are kept', async () => {
    const hook = open.use(await receiver(status(503), status(200)))
    const { clock, log, add } = webhookAt(hook, [item('a')])
    await until(() => log.lines.length > 0, { what: 'the pause' })
    for (let number = 0; number < 250; number++) add(item(`n${number}`))
    await clock.pass(10_000)
    const last = await hook.delivery(3)
    expect(ids(last)).toHaveLength(200)
    expect(ids(last).at(-1)).toBe('n249')
  })

  test('nothing is sent without the setting, and nothing is left behind at the end', async () => {
    const hook = open.use(await receiver(silent))
    const { add, settings, webhook, clock, log, listening } = webhookAt(hook)
    const { url } = settings
    settings.url = undefined
    add(item('a'))
    settings.url = url
    add(item('b'))
    expect(ids(await hook.delivery(1))).toEqual(['b'])
    webhook[Symbol.dispose]()
    await until(() => clock.pending === 0, { what: 'the end of the request' })
    expect(listening()).toBe(false)
    expect(log.lines).toEqual([])
  })
})
