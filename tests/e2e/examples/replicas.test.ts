import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { unusedPort } from '../../fixtures/listening.ts'
import { startPostgres } from '../../fixtures/postgres.ts'
import { compiled, toolwayWords } from '../../fixtures/programs.ts'
import { startRedis } from '../../fixtures/redis.ts'
import { until } from '../../fixtures/until.ts'

const example = fileURLToPath(new URL('../../../examples/replicas/', import.meta.url))

test('the example replicas: two replicas share a limit and the audit log', async () => {
  await using open = new AsyncDisposableStack()
  const { path } = open.use(await temporaryFolder())
  const [folder, home] = [join(path, 'work'), join(path, 'home')]
  await Promise.all([cp(example, folder, { recursive: true }), mkdir(home)])
  const [redis, postgres] = await Promise.all([startRedis(), startPostgres()])
  open.use(redis)
  open.use(postgres)
  const shared = {
    PATH: process.env.PATH,
    HOME: home,
    ...compiled,
    TOOLWAY: [process.execPath, ...toolwayWords].join(' '),
    TOOLWAY_TOKEN: 'the-token-of-both-replicas',
    REDIS_URL: redis.url,
    DATABASE_URL: await postgres.database(),
  }
  const start = async (name: string) => {
    const port = String(await unusedPort())
    const options = { cwd: folder, env: shared, stdio: 'ignore' } as const
    const replica = spawn('sh', ['replica.sh', name, port], options)
    const exit = once(replica, 'exit')
    open.defer(async () => {
      replica.kill()
      await exit
    })
    const url = `http://127.0.0.1:${port}`
    const isReady = () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      )
    await until(isReady, { what: `the replica ${name} to listen` })
    return url
  }
  const urls = await Promise.all([start('one'), start('two')])

  const ask = async (replica: number, path: string, body?: object) => {
    const response = await fetch(`${urls[replica]}/admin/api/${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${shared.TOOLWAY_TOKEN}`, 'content-type': 'application/json' },
      body: body ? JSON.stringify(body) : null,
    })
    return (await response.json()) as { error?: { code: string }; rows?: { tool: string }[] }
  }

  const codes: (string | undefined)[] = []
  for (const replica of [0, 1, 0, 1, 0, 1])
    codes.push((await ask(replica, 'tools/hash/call', { arguments: { data: 'hello' } })).error?.code)
  expect(codes).toEqual([...Array(5).fill(undefined), 'RATE_LIMITED'])

  const calls = async () => (await ask(1, 'audit?tool=hash&decision=ALLOW')).rows?.length
  await expect.poll(calls).toBe(5)
})
