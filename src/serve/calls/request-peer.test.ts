import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import { events, openTestServer } from '../http/server.fixture.ts'
import { absenceMs } from '../session/resumable-streams.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})
const openServer = async () => open.use(await openTestServer())
const asking = (more: object = {}) => ({ id: 1, method: 'tools/call', params: { name: 'ask', arguments: more } })

describe("G3: asking the caller's own client", () => {
  test("is sent on the call's stream, and the answer reaches the call", async () => {
    const { session } = await openServer()
    const { send } = await session({ sampling: {} })
    const { body } = await send(asking())
    const stream = events(body)
    const question = (await stream.next()).value
    expect(question).toMatchObject({ method: 'sampling/createMessage', params: { maxTokens: 9 } })
    expect((await send({ id: question?.id, result: { model: 'm' } })).statusCode).toBe(202)
    expect((await stream.next()).value).toMatchObject({ id: 1, result: { content: [{ text: '{"model":"m"}' }] } })
    expect((await stream.next()).done).toBe(true)
  })

  test("a client's own error is passed on unchanged", async () => {
    const { session } = await openServer()
    const { send } = await session({ sampling: {} })
    const { body } = await send(asking())
    const stream = events(body)
    const question = (await stream.next()).value
    await send({ id: question?.id, error: { code: -1, message: 'User rejected sampling' } })
    expect((await stream.next()).value?.error).toEqual({ code: -1, message: 'User rejected sampling' })
  })

  test.each([
    ['sampling/createMessage', 'sampling'],
    ['elicitation/create', 'elicitation'],
    ['roots/list', 'roots'],
  ])('%s is refused where the client did not declare it', async (method, capability) => {
    const { session } = await openServer()
    const { ask } = await session()
    const { result } = await ask('tools/call', { name: 'ask', arguments: { method } })
    expect(result.isError).toBe(true)
    expect(result.content[0].text).toContain(`did not declare the capability "${capability}"`)
  })

  test('a client that takes no stream cannot be asked', async () => {
    const { session } = await openServer()
    const { send } = await session({ sampling: {} })
    const { body } = await send(asking(), { headers: { accept: 'application/json' } })
    expect(await body.json()).toMatchObject({
      result: { isError: true, _meta: { 'dev.toolway/error': { code: 'CANCELLED' } } },
    })
  })

  test('another session cannot answer, nor can a made-up or repeated answer do harm', async () => {
    const { session } = await openServer()
    const { send } = await session({ sampling: {} })
    const other = await session({ sampling: {} })
    const { body } = await send(asking())
    const stream = events(body)
    const { id } = (await stream.next()).value ?? {}
    await other.send({ id, result: { model: 'stolen' } })
    await send({ id: 4711, result: { model: 'made up' } })
    await send({ id, result: { model: 'right' } })
    await send({ id, result: { model: 'again' } })
    expect((await stream.next()).value?.result.content[0].text).toBe('{"model":"right"}')
  })

  test('a cancelled call takes its question back', async () => {
    const { session, access } = await openServer()
    const { send } = await session({ sampling: {} })
    const { body } = await send(asking())
    const stream = events(body)
    const { id } = (await stream.next()).value ?? {}
    await send({ method: 'notifications/cancelled', params: { requestId: 1 } })
    expect((await stream.next()).value).toMatchObject({ method: 'notifications/cancelled', params: { requestId: id } })
    expect((await stream.next()).done).toBe(true)
    expect(access.calls[0]?.signal.aborted).toBe(true)
  })

  test('a question that its call did not wait for is taken back before the answer', async () => {
    const { session } = await openServer()
    const { send } = await session({ roots: {} })
    const { body } = await send({ id: 1, method: 'tools/call', params: { name: 'ask_and_leave' } })
    const heard = (await Array.fromAsync(events(body))).map(({ method, id }) => method ?? id)
    expect(heard).toEqual(['roots/list', 'notifications/cancelled', 1])
  })

  test('a client that disconnects and does not return ends the waiting', async () => {
    const { session, access, clock } = await openServer()
    const { send } = await session({ sampling: {} })
    const { body } = await send(asking())
    await events(body).next()
    clock.advance(absenceMs)
    expect(access.calls[0]?.signal.aborted).toBe(false)
    body.on('error', () => {}).destroy()
    const over = () => {
      clock.advance(absenceMs)
      return access.calls[0]?.signal.aborted
    }
    await until(over, { what: 'the cancellation' })
  })

  test('questions to one client are bounded', async () => {
    const { session } = await openServer()
    const { send } = await session({ sampling: {} })
    const bodies = []
    for (let id = 1; id <= 64; id++) bodies.push((await send({ ...asking(), id })).body)
    const { body } = await send({ ...asking(), id: 65 })
    expect(await body.json()).toMatchObject({ result: { _meta: { 'dev.toolway/error': { code: 'OVERLOADED' } } } })
    for (const body of bodies) body.destroy()
  })
})
