import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { missing, provide } from '../../fixtures/debian.ts'
import { serverProgram } from '../../fixtures/programs.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { converse } from './conversation.ts'
import { directly } from './directly.ts'
import { javascript, python, task } from './programs.ts'

provide('bwrap', 'bubblewrap')
provide('python3', 'python3')

const server = (name: string) => ({
  command: process.execPath,
  args: [serverProgram('shop'), name],
})

const allow = { servers: ['*'] }
const deny = { tools: { orders: ['wipe-*'] } }
const open = new AsyncDisposableStack()
let toolway: LocalToolway

beforeAll(async () => {
  const names = ['orders', 'customers', 'products', 'bank', 'reports']
  toolway = open.use(
    await startToolway({
      mcpServers: Object.fromEntries(names.map((name) => [name, server(name)])),
      agents: { coder: { allow, deny, expose: 'code' }, clerk: { allow, deny, expose: 'direct' } },
      sandbox: { minIsolation: 'worker' },
    }),
  )
  await toolway.gateway.refresh()
})

afterAll(() => open.disposeAsync())

interface Ran {
  readonly status: string
  readonly value: { readonly report: string; readonly rows: readonly object[] }
  readonly calls: readonly { readonly tool: string; readonly status: string }[]
  readonly isolation: string
}

describe('a task over five tools and 2,000 rows', () => {
  test('B9, B8: one program does it in a twentieth of the tokens, with the same result', async () => {
    const clerk = await converse(toolway, 'clerk')
    await clerk.list()
    const expected = await directly(clerk)

    const coder = await converse(toolway, 'coder')
    const listed = await coder.list()
    expect(listed.map(({ name }) => name).sort()).toEqual(['describe_tools', 'execute_code', 'search_tools'])
    const found = await coder.call<{ matches: { server: string; name: string }[] }>('search_tools', {
      query: task,
      limit: 8,
    })
    const names = found.matches.map(({ server, name }) => `${server}.${name}`)
    expect(names).toEqual(
      expect.arrayContaining(['orders.list-orders', 'customers.get_customers', 'reports.save_report']),
    )
    const { declarations } = await coder.call<{ declarations: string }>('describe_tools', { names })
    expect(declarations).toContain('list_orders(args?: ')
    const { value, calls } = await coder.call<Ran>('execute_code', { code: javascript })

    expect(value).toEqual(expected)
    expect(value.rows).toHaveLength(3)
    expect(new Set(calls.map(({ tool }) => tool)).size).toBe(5)
    expect(calls.every(({ status }) => status === 'ok')).toBe(true)
    expect(calls.at(-1)?.tool).toBe('reports.save_report')

    const sum = ({ read, written }: { read: number; written: number }) => read + written
    const times = sum(clerk.tokens) / sum(coder.tokens)
    console.log(
      `direct: ${clerk.tokens.read} tokens read, ${clerk.tokens.written} written; ` +
        `code: ${coder.tokens.read} read, ${coder.tokens.written} written: ${times.toFixed(1)} times less`,
    )
    expect(times).toBeGreaterThan(20)
  })

  test.skipIf(missing('bwrap') ?? missing('python3'))('B9: the same in Python', async () => {
    const coder = await converse(toolway, 'coder')
    const args = { code: python, language: 'python' }
    const { value, isolation } = await coder.call<Ran>('execute_code', args)
    expect(value).toEqual((await coder.call<Ran>('execute_code', { code: javascript })).value)
    expect(isolation).toBe('bwrap')
  })
})

describe('a denied tool', () => {
  const ways = [
    'tools.orders.wipe_orders()',
    "tools.orders['wipe-orders']()",
    "tools['orders.wipe-orders']()",
    "tools['orders__wipe-orders']()",
    "tools['toolway.orders.wipe-orders']()",
    "tools['orders::wipe-orders']()",
    "tools['orders/wipe-orders']()",
    "tools.toolway.execute_tool({ server: 'orders', tool: 'wipe-orders', args: {} })",
    "tools.toolway.execute_tools({ calls: [{ server: 'orders', tool: 'wipe-orders' }] })",
    "tools.native.execute_code({ code: 'tools.orders.wipe_orders()' })",
    "host('call', JSON.stringify({ server: 'orders', tool: 'wipe-orders', caller: { agent: 'clerk', admin: true } }))",
  ]

  test('G6: no program of any spelling reaches it, nor finds or describes it', async () => {
    const coder = await converse(toolway, 'coder')
    const tries = ways.map((way) => `await ${way}.then(() => 'reached', (error) => error.code)`)
    const { value: codes } = await coder.call<{ value: string[] }>('execute_code', { code: `[${tries.join(',')}]` })
    for (const [at, way] of ways.entries()) {
      expect(['DENIED_BY_POLICY', 'INVALID_ARGUMENTS', 'TOOL_NOT_FOUND'], way).toContain(codes[at])
    }
    const code = `const found = await search('deletes all orders wipe')
;[found.map(({ name }) => name), await describe('orders.wipe-orders', 'orders.wipe_orders'), (await tools.orders.wiped()).wiped]`
    const { value } = await coder.call<{ value: [string[], string, number] }>('execute_code', { code })
    expect(value[0]).not.toContain('wipe-orders')
    expect(value[1]).not.toContain('Deletes all orders')
    expect(value[2]).toBe(0)
  })
})

describe('arguments that cannot be sent', () => {
  const deep = 'let deep = {}; for (let i = 0; i < 20000; i++) deep = { deep }; deep'
  test.each([
    ['a function', '{ page() {} }', '"page" is a function'],
    ['a BigInt', '{ page: 1n }', '"page" is a bigint'],
    ['a symbol', "{ page: Symbol('x') }", '"page" is a symbol'],
    ['a cyclic object', '(() => { const page = {}; page.page = page; return page })()', 'circular'],
    ['an object nested 200 levels deep', `(() => { ${deep.replace('20000', '200')}\nreturn deep })()`, 'too deeply'],
    ['an object nested 20,000 levels deep', `(() => { ${deep}\nreturn deep })()`, 'too deeply'],
  ])('B9: %s rejects the promise of its call, and the other calls run', async (_, args, message) => {
    const coder = await converse(toolway, 'coder')
    const code = `const [refused, ran] = await Promise.allSettled([tools.orders.list_orders(${args}), tools.orders.wiped()])
;[refused.reason instanceof ToolError, refused.reason.code, refused.reason.message, refused.reason.tool, ran.value.wiped]`
    const { value, calls } = await coder.call<{ value: unknown[]; calls: { tool: string }[] }>('execute_code', { code })
    expect(value).toEqual([true, 'INVALID_ARGUMENTS', expect.stringContaining(message), 'list_orders', 0])
    expect(calls.map(({ tool }) => tool)).toContain('orders.wiped')
  })
})

test('B9: declarations have the type of results with an outputSchema, and mark the others', async () => {
  const coder = await converse(toolway, 'coder')
  const { declarations } = await coder.call<{ declarations: string }>('describe_tools', {
    names: ['orders.wiped', 'native.hash'],
  })
  expect(declarations).toMatch(/hash\(.*\): Promise<\{/s)
  expect(declarations).toContain('wiped(args?: {}): Promise<any /* no outputSchema */>')
})

test('S7: an environment keeps its variables for its agent only', async () => {
  const args = { environment: 'scratch' }
  const coder = await converse(toolway, 'coder')
  await coder.call('execute_code', { ...args, code: 'var kept = 41' })
  expect(await coder.call('execute_code', { ...args, code: 'kept + 1' })).toMatchObject({ value: 42 })
  const clerk = await converse(toolway, 'clerk')
  const seen = await clerk.call('execute_code', { ...args, code: 'typeof kept' })
  expect(seen).toMatchObject({ value: 'undefined' })
})
