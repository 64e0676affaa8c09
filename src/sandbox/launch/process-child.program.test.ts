import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { missing } from '../../../tests/fixtures/debian.ts'
import { withFewFiles } from '../../../tests/fixtures/few-files.ts'
import { messageKinds } from '../guest/protocol.ts'
import { bwrapCommand } from './bwrap.ts'
import { processChild, UnmappedUser } from './process-child.ts'

/** A frame without payload, in the words of a shell. */
const frame = (kind: number) => `printf '\\0${kind}\\0\\0\\0\\0\\0\\0\\0\\0'`

/** A child that does what a script says, and what is heard of it until it is gone. */
async function heard(script: string): Promise<readonly number[]> {
  const child = processChild({ command: ['/bin/sh', '-c', script], limit: () => 0 })
  const said: number[] = []
  child.listen({ frame: ({ kind }) => said.push(kind), broken() {}, ended() {} })
  await child.ready
  await child.ended
  return said
}

test('S7: a child that cannot start because too many files are open fails with that reason', async () => {
  const printed = await withFewFiles(`
    import { processChild } from ${JSON.stringify(new URL('process-child.ts', import.meta.url))}
    exhaust()
    for (const wrapped of [false, true]) {
      const child = processChild({ command: ['/bin/sh'], wrapped, filter: Buffer.alloc(0), limit: () => 0 })
      const reason = await child.ready.catch(({ message }) => message)
      await child.ended
      await child.kill()
      release()
      console.log(reason)
      exhaust()
    }
  `)
  expect(printed.trim().split('\n')).toEqual([expect.stringContaining('EMFILE'), expect.stringContaining('EMFILE')])
})

describe('a child that floods its host', () => {
  test('S7: is ready once; later frames go to the listener', async () => {
    const { ready, log } = messageKinds
    expect(await heard([ready, ready, log].map(frame).join('; '))).toEqual([ready, log])
  })

  test('S7: only the beginning of its stderr is read', async () => {
    // A program that keeps writing gets SIGPIPE and ends.
    const talk = '/usr/bin/env yes >&2'
    expect(await heard(`${frame(messageKinds.ready)}; ${talk}; ${frame(messageKinds.done)}`)).toEqual([
      messageKinds.done,
    ])
  })
})

test('S7: a user that this namespace does not have is named as the reason why programs cannot run', () => {
  expect(() => processChild({ command: ['/bin/sh'], user: -1, limit: () => 0 })).toThrow(UnmappedUser)
})

test.skipIf(missing('bwrap') ?? missing('python3'))(
  'S7: a program ends with its host, even if it disabled the signal for the death of its parent',
  async () => {
    const survivor = `import ctypes, time
ctypes.CDLL(None).prctl(1, 0)
print('up', flush=True)
time.sleep(20)`
    const words = bwrapCommand({
      bwrap: 'bwrap',
      mounts: [{ from: '/', to: '/' }],
      filtered: false,
      command: ['python3', '-c', survivor],
    })
    const host = spawn('/bin/sh', ['-c', '"$@" & wait', 'sh', ...words], {
      stdio: ['ignore', 'pipe', 'inherit', 'ignore', 'pipe'],
      env: { PATH: process.env.PATH },
    })
    const [, output, , , info] = host.stdio as unknown as Readable[]
    info?.resume()
    // Only when nobody is left who could write.
    const closed = once(host, 'close')
    await once(output as Readable, 'data')
    host.kill('SIGKILL')
    expect(await closed).toEqual([null, 'SIGKILL'])
  },
)
