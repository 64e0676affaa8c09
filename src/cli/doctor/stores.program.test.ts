import { expect, test } from 'vitest'
import { askRedis, type RedisServer, startRedis } from '../../../tests/fixtures/redis.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { redisFindings } from './stores.ts'

const found = (url: string) => redisFindings({ stores: { redis: { url, disabled: false } } } as never)

const withUser = async (server: RedisServer, ...rules: string[]) => {
  await askRedis(server, (client) => client.acl('SETUSER', 'user', 'reset', 'on', '>hunter2', '~*', '+@all', ...rules))
  return server.url.replace('//', '//user:hunter2@')
}

withPart('redis-server', 'B11: doctor checks Redis', () => {
  test('B11: doctor says whether Redis can be used, and why not, without the password', async () => {
    await using server = await startRedis()
    const warns = (why: RegExp) => ({ status: 'warning', message: expect.stringMatching(why) })
    expect(await found(await withUser(server, '&*'))).toMatchObject({ status: 'ok' })
    expect(await found(await withUser(server))).toMatchObject(warns(/messages.*NOPERM/))
    expect(await found(await withUser(server, '-@scripting'))).toMatchObject(warns(/unavailable.*NOPERM/))
    const wrong = await found(server.url.replace('//', '//user:hunter3@'))
    expect(wrong).toMatchObject(warns(/unavailable.*WRONGPASS/))
    expect(JSON.stringify(wrong)).not.toContain('hunter3')
    expect(await found('redis://127.0.0.1:1')).toMatchObject(warns(/unavailable.*ECONNREFUSED/))
  })
})
