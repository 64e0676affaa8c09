import { describe, expect, onTestFinished, test } from 'vitest'
import { isRunning } from './receiver.fixture.ts'
import { bytesOf, established, gone, make, rogue, started } from './stdio.fixture.ts'

test.each(['not a message\\n', '\\n'])(
  'G2: a program that floods stdout with %j instead of answering the handshake is stopped, and the error says why',
  async (line) => {
    const flood = `for (;;) require("fs").writeSync(1, "${line}".repeat(10_000))`
    const { heard, pid } = await started({ args: ['-e', flood] })
    const error = await heard.down
    expect(error).toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { server: 'rogue' } })
    expect(error.message).toMatch(/more than 4 MiB to stdout/)
    await gone(pid)
  },
)

describe('a server that dies in mid-call', () => {
  test('F12: pending calls are OUTCOME_UNKNOWN with exit code and last stderr line, later ones are SERVER_UNAVAILABLE', async () => {
    const { heard, pid, start } = await established({ env: { TOKEN: 'super-secret-token' } })
    await start('exit', { code: 3, words: 'disk full for super-secret-token' })
    const error = await heard.down
    expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN', details: { server: 'rogue' } })
    expect(error.message).toMatch(/^rogue ended \(exit code 3\)\. It last wrote: "disk full for \[redacted\]"\.$/)
    await expect(start('echo')).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { unsent: true } })
    expect(isRunning(pid)).toBe(false)
    expect(heard.downs).toBe(1)
  })

  test('B6: its last stderr line is redacted', async () => {
    const redact = (text: string) => text.replaceAll('c3VwZXI=', '[hidden]')
    const { heard, start } = await established({ redact })
    await start('exit', { code: 3, words: 'no such user c3VwZXI=' })
    expect((await heard.down).message).toContain('It last wrote: "no such user [hidden]".')
  })

  test('F12: a signal is named', async () => {
    const { heard, start } = await established()
    await start('crash')
    expect((await heard.down).message).toContain('ended (SIGKILL)')
  })

  test('F12: an answer written just before the end still arrives, whole', async () => {
    const { heard, call } = await established()
    expect(await call('exit-after-answer')).toHaveLength(1024 * 1024)
    await heard.down
  })

  test('F12: an incomplete response is dropped', async () => {
    const { heard, start } = await established()
    await start('half-line-exit')
    await heard.down
    expect(heard.heard.filter(({ kind }) => kind === 'response')).toHaveLength(1)
  })

  test('F12: a grandchild that holds input and output open delays neither the loss event nor the failure of pending sends', async () => {
    const { transport, heard, pid, call } = await established()
    const grandchild = Number(await call('grandchild', { detached: true }))
    onTestFinished(() => void process.kill(grandchild, 'SIGKILL'))
    await call('stop-reading')
    const big = bytesOf({ jsonrpc: '2.0', method: 'x', params: { text: 'x'.repeat(4 * 1024 * 1024) } })
    const sends = [transport.send({ body: big }), transport.send({ body: big })].map((send) =>
      send.catch(({ code }) => code),
    )
    process.kill(pid, 'SIGKILL')
    expect((await heard.down).code).toBe('OUTCOME_UNKNOWN')
    expect((await Promise.all(sends))[1]).toBe('SERVER_UNAVAILABLE')
    expect(isRunning(grandchild)).toBe(true)
  })

  test('security: remaining processes of its group are killed', async () => {
    const { heard, call, start } = await established()
    const grandchild = Number(await call('grandchild'))
    await start('exit')
    await heard.down
    await gone(grandchild)
  })
})

describe('a server that stops listening', () => {
  test('B7: sends settle when it dies while its input is backed up', async () => {
    const { transport, heard, pid, call } = await established()
    await call('stop-reading')
    const big = bytesOf({ jsonrpc: '2.0', id: 9, method: 'x', params: { text: 'x'.repeat(4 * 1024 * 1024) } })
    const sends = [1, 2, 3].map((exchange) => transport.send({ body: big, exchange }).catch(({ code }) => code))
    process.kill(pid, 'SIGKILL')
    const settled = await Promise.all(sends)
    // The first message was being written, so its outcome is unknown; the others were certainly not read.
    expect(settled.slice(1)).toEqual(['SERVER_UNAVAILABLE', 'SERVER_UNAVAILABLE'])
    expect((await heard.down).code).toBe('OUTCOME_UNKNOWN')
  })

  test('B7: the queue of unwritten messages is bounded', async () => {
    const { transport, call } = await established()
    await call('stop-reading')
    const big = bytesOf({ jsonrpc: '2.0', method: 'x', params: { text: 'x'.repeat(10 * 1024 * 1024) } })
    const first = [transport.send({ body: big }), transport.send({ body: big })].map((send) => send.catch(() => {}))
    await expect(transport.send({ body: big })).rejects.toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringContaining('not reading'),
    })
    await transport[Symbol.asyncDispose]()
    await Promise.all(first)
  })

  test('F10, F12: a call that was cancelled before the server read it is not run when it reads again', async () => {
    const { transport, call, pid, heard } = await established()
    process.kill(pid, 'SIGSTOP')
    const filler = bytesOf({ jsonrpc: '2.0', method: 'x', params: { text: 'x'.repeat(1024 * 1024) } })
    const sending = transport.send({ body: filler })
    const caller = new AbortController()
    const body = bytesOf({ jsonrpc: '2.0', id: 77, method: 'tools/call', params: { name: 'echo', arguments: {} } })
    const called = transport.send({ body, exchange: 77, signal: caller.signal }).catch((reason) => reason)
    caller.abort('too late')
    expect(await called).toBe('too late')
    process.kill(pid, 'SIGCONT')
    await sending
    await call('echo', { text: 'after' })
    expect(heard.heard.filter((message) => 'id' in message && message.id === 77)).toEqual([])
  })

  test.each(['input', 'output'])('F12: a server that closes its %s is stopped', async (which) => {
    const { transport, heard, pid, start } = await established()
    await start(`close-${which}`)
    if (which === 'input') {
      await heard.until((message) => message.kind === 'response' && message.id === 1)
      await expect(start('echo')).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
      expect(transport.usable).toBe(false)
    }
    expect((await heard.down).message).toContain(`closed its ${which} and was stopped`)
    await gone(pid)
    await transport[Symbol.asyncDispose]()
  })
})

describe('closing', () => {
  const closed = async (prepare: (all: Awaited<ReturnType<typeof established>>) => Promise<unknown>) => {
    const all = await established()
    const grandchild = Number(await all.call('grandchild'))
    await prepare(all)
    await all.transport[Symbol.asyncDispose]()
    expect(isRunning(all.pid)).toBe(false)
    await gone(grandchild)
    expect(all.heard.downs).toBe(0)
    await expect(all.start('echo')).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  }

  test('security: the end of its input is enough for a good server, and its grandchildren die too', async () => {
    await closed(async () => {})
  })

  test('security: a server that ignores the end of its input and SIGTERM is killed, with its grandchildren', async () => {
    await closed(({ call }) => call('ignore-end'))
  })

  test('security: a server that does not read is killed too', async () => {
    await closed(({ call }) => call('stop-reading'))
  })

  test('security: a shell between us and the server dies with it', async () => {
    const { transport, pid, call } = await established({
      command: 'sh',
      args: ['-c', `"${process.execPath}" "${rogue}"; true`],
    })
    const grandchild = Number(await call('grandchild'))
    await call('ignore-end')
    await transport[Symbol.asyncDispose]()
    await Promise.all([gone(pid), gone(grandchild)])
  })

  test('security: disposing twice, or of what was never opened, is fine', async () => {
    const { transport } = await established()
    await Promise.all([transport[Symbol.asyncDispose](), transport[Symbol.asyncDispose]()])
    await make()[Symbol.asyncDispose]()
  })
})
