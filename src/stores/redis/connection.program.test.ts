import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createKeptLog, type KeptLog } from '../../../tests/fixtures/log.ts'
import { askRedis, startRedis, startRedisProxy } from '../../../tests/fixtures/redis.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { systemClock as clock } from '../../core/clock.ts'
import { connectRedis } from './connection.ts'
import { connected } from './redis.fixture.ts'

/** The reasons that were logged for an unavailable Redis, or a rejected command. */
const reasons = ({ lines }: KeptLog) => lines.filter(({ level }) => level !== 'info').map(({ facts }) => facts.why)

/** Redis before version 6 knows only the older protocol, and so does a server without this command. */
const withoutHello = ['--rename-command', 'HELLO', '']

withPart('redis-server', 'B10: a connection to Redis', () => {
  test('B10: a connection whose packets are dropped is replaced, also while it is being opened', async () => {
    await using server = await startRedis()
    await using proxy = await startRedisProxy(server)
    await using redis = await connected(proxy.url)
    const ask = () => redis.ask((client) => client.get('a'))
    proxy.drop({ next: 1 })
    await Promise.all([ask(), ask(), ask()])
    expect(redis.up).toBe(false)
    await until(() => redis.up, { what: 'the connection after the next' })
    expect(await ask()).toBeNull()
  })

  test('B10: after a failover, a connection to the old master is replaced by one to the new master', async () => {
    await using old = await startRedis()
    await using master = await startRedis()
    await using proxy = await startRedisProxy(old)
    const log = createKeptLog()
    await using redis = await connected(proxy.url, log)
    await askRedis(old, (client) => client.replicaof('127.0.0.1', new URL(master.url).port))
    const write = () => redis.ask((client) => client.multi().set('a', 'b').exec())
    expect(await write()).toBeUndefined()
    await until(() => !redis.up, { what: 'the refusal' })
    expect(reasons(log)).toEqual([expect.stringMatching(/^(READONLY|MASTERDOWN|LOADING) /)])
    proxy.moveTo(master)
    await until(() => redis.up, { what: 'the new master' })
    await write()
    expect(await askRedis(master, (client) => client.get('a'))).toBe('b')
  })

  test('B10: Redis counts as down while it accepts no writes, and the reason is logged once', async () => {
    await using server = await startRedis()
    const log = createKeptLog()
    await using redis = await connected(server.url, log)
    await askRedis(server, (client) => client.config('SET', 'maxmemory', '1'))
    expect(await redis.ask((client) => client.set('a', 'b'))).toBeUndefined()
    await until(() => !redis.up, { what: 'the refusal' })
    const writes = () =>
      askRedis(server, async (client) => /cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'))?.[1])
    await until(async () => Number(await writes()) > 3, { what: 'further probes' })
    expect(reasons(log)).toEqual([expect.stringMatching(/^OOM /)])
    await askRedis(server, (client) => client.config('SET', 'maxmemory', '0'))
    await until(() => redis.up, { what: 'the return' })
  })

  test('B10: Redis counts as down if it refuses scripts, but not if it refuses a single command', async () => {
    await using server = await startRedis()
    const user = (name: string, ...rules: string[]) =>
      askRedis(server, (client) => client.acl('SETUSER', name, 'on', '>secret', '~*', '+@all', ...rules))
    const urlOf = (name: string) => server.url.replace('//', `//${name}:secret@`)
    await user('no-scripts', '-@scripting')
    const log = createKeptLog()
    await using strict = await connectRedis({ url: urlOf('no-scripts'), clock, log })
    await until(() => log.lines.length > 0, { what: 'the refusal' })
    expect(reasons(log)).toEqual([expect.stringMatching(/^NOPERM .*evalsha/)])
    await user('no-scripts', '+@scripting')
    await until(() => strict.up, { what: 'the permission' })

    await user('no-channels', 'resetchannels')
    const other = createKeptLog()
    await using redis = await connected(urlOf('no-channels'), other)
    for (let count = 0; count < 3; count++) await redis.ask((client) => client.publish('channel', 'text'))
    await until(() => reasons(other).length > 0, { what: 'the rejection' })
    expect(reasons(other)).toEqual([expect.stringMatching(/^NOPERM .*channel/)])
    expect(redis.up).toBe(true)
  })

  test.each([
    ['RESP3', []],
    ['RESP2', withoutHello],
  ])('B10: a subscribed connection whose packets are dropped is replaced (%s)', async (_protocol, options) => {
    await using server = await startRedis(options)
    await using proxy = await startRedisProxy(server)
    const manual = createManualClock()
    await using redis = await connectRedis({ url: proxy.url, clock: manual, log: createKeptLog() })
    await until(() => redis.up, { what: 'Redis' })
    const heard: string[] = []
    await using _ = redis.subscribe(['channel'], (_channel, message) => void heard.push(message))
    const arrives = (text: string) =>
      until(
        async () => {
          await askRedis(server, (client) => client.publish('channel', text))
          return heard.includes(text)
        },
        { what: text },
      )
    await arrives('first')
    // A ping that is answered changes nothing.
    await manual.pass(10_000)
    await arrives('second')
    proxy.drop({ sent: 'subscribe' })
    await manual.pass(12_000)
    await arrives('third')
    expect(redis.up).toBe(true)
  })

  test('B10: a refused subscription is logged once, and repeated', async () => {
    await using server = await startRedis()
    const user = (...rules: string[]) =>
      askRedis(server, (client) => client.acl('SETUSER', 'limited', 'on', '>secret', '~*', '+@all', ...rules))
    await user('resetchannels')
    const [manual, log] = [createManualClock(), createKeptLog()]
    const url = server.url.replace('//', '//limited:secret@')
    await using redis = await connectRedis({ url, clock: manual, log })
    await until(() => redis.up, { what: 'Redis' })
    await using _ = redis.subscribe(['channel'], () => {})
    await until(() => reasons(log).length > 0, { what: 'the refusal' })
    await manual.pass(10_000)
    await user('&*')
    const count = () => askRedis(server, (client) => client.publish('channel', 'text'))
    await until(async () => (await manual.pass(10_000)) ?? (await count()) > 0, { what: 'the subscription' })
    expect(reasons(log)).toEqual([expect.stringMatching(/^NOPERM .*channel/)])
  })

  test('B10: the log tells once why no connection can be opened, and never the password', async () => {
    await using server = await startRedis()
    const log = createKeptLog()
    await using redis = await connectRedis({ url: server.url.replace('//', '//somebody:hunter2@'), clock, log })
    await until(() => reasons(log).length > 0, { what: 'the refused password' })
    await server.stop()
    await until(() => reasons(log).length > 1, { what: 'the refused connection' })
    expect(reasons(log)).toEqual([expect.stringMatching(/^WRONGPASS /), expect.stringContaining('ECONNREFUSED')])
    expect(redis.problem).toContain('ECONNREFUSED')
    await server.start()
    await askRedis(server, (client) => client.acl('SETUSER', 'somebody', 'on', '>hunter2', '~*', '+@all'))
    await until(() => redis.up, { what: 'Redis' })
    expect(redis.problem).toBeUndefined()
    expect(JSON.stringify(log.lines)).not.toContain('hunter2')
  })

  test('B10: a Redis without AUTH repeats the password in its reply, and the log does not', async () => {
    await using server = await startRedis([...withoutHello, '--rename-command', 'AUTH', ''])
    const log = createKeptLog()
    await using _ = await connectRedis({ url: server.url.replace('//', '//somebody:hunter2@'), clock, log })
    await until(() => reasons(log).length > 0, { what: 'the refusal' })
    expect(reasons(log)[0]).toContain('unknown command')
    expect(JSON.stringify(log.lines)).not.toContain('hunter2')
  })

  test('B10: Redis counts as down if the database in its URL does not exist', async () => {
    await using server = await startRedis()
    const log = createKeptLog()
    await using redis = await connectRedis({ url: `${server.url}/16`, clock, log })
    await until(() => reasons(log).length > 0, { what: 'the refusal' })
    expect(reasons(log)).toEqual([expect.stringMatching(/^database 16 cannot be used: ERR /)])
    expect(redis.up).toBe(false)
    expect(await askRedis(server, (client) => client.dbsize())).toBe(0)
  })

  test('B10: the database in the URL is used', async () => {
    await using server = await startRedis()
    await using redis = await connected(`${server.url}/15`)
    await redis.ask((client) => client.set('a', 'b'))
    expect(await askRedis({ ...server, url: `${server.url}/15` }, (client) => client.get('a'))).toBe('b')
  })
})
