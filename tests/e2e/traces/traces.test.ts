import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeConfig } from '../../fixtures/config-file.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { startMirror } from '../../fixtures/mirror-server.ts'
import { type Collector, startCollector } from '../../fixtures/otlp/collector.ts'
import { installCollector } from '../../fixtures/otlp/install.ts'
import { newId } from '../../fixtures/otlp/send-span.ts'
import { startTracedServer } from '../../fixtures/otlp/traced-server.ts'
import { compiled, serverProgram, toolwayWords } from '../../fixtures/programs.ts'
import { rawModern } from '../../fixtures/raw-callers.ts'
import { startEverything, stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { type TracedClient, tracedClient } from './story.ts'
import { treeOf } from './tree.ts'

const installed = installCollector()
const why = 'why' in installed ? installed.why : undefined

// On other people's machines nothing is installed; where we test for all, silence would be a lie.
if (why !== undefined && process.env.CI) {
  test('a real OTLP receiver is available', () => expect.fail(why))
}

const program = serverProgram('traced')

// At once, because a gateway sends its spans once a second.
describe.skipIf(why !== undefined)(
  `F16: traces${why === undefined ? '' : ` (skipped: ${why})`}`,
  { concurrent: true },
  () => {
    const open = new AsyncDisposableStack()
    let collector: Collector
    let toolway: LocalToolway
    let http: TracedClient
    let configured: Record<string, unknown> & { mcpServers: Record<string, Record<string, unknown>> }
    let everythingPort: number

    beforeAll(async () => {
      const [started, everything, modern] = await Promise.all([
        startCollector('program' in installed ? installed.program : ''),
        startEverything('streamableHttp'),
        startMirror('modern'),
      ])
      for (const one of [started, everything, modern]) open.use(one)
      collector = started
      everythingPort = everything.port
      configured = {
        mcpServers: {
          piped: { command: process.execPath, args: [program, collector.url] },
          remote: { url: open.use(await startTracedServer(collector.url)).url },
          everything: { url: everything.url },
          probe: stdioServers.probe(),
          modern: { url: modern.url },
        },
        policy: { blockedTools: ['probe.die'] },
        defaults: { expose: 'both' },
        telemetry: { traces: { otlp: collector.url } },
      }
      toolway = open.use(await startToolway(configured))
      http = open.use(await tracedClient({ endpoint: toolway }, collector))
      await http.client.listTools()
    })

    afterAll(() => open.disposeAsync())

    /** The configuration of one server. */
    const only = (server: string) => ({ [server]: configured.mcpServers[server] as Record<string, unknown> })

    test.each(['piped', 'remote'])(
      'from a client over HTTP to a server that is %s all spans are joined, with the context in `_meta`, headers or both',
      async (server) => {
        const options = (['meta', 'header', 'both'] as const).map((carrier) => ({
          carrier,
          meta: { 'example.com/kept': [1] },
        }))
        const calls = []
        for (const option of options) calls.push(await http.call(`${server}__work`, {}, option))
        for (const { traceId, said } of calls) {
          const spans = await collector.whole(traceId, 4)
          expect(treeOf(spans)).toEqual([
            'story CLIENT the story',
            '  toolway SERVER tools/call work',
            '    toolway CLIENT tools/call work',
            '      traced-server SERVER tools/call work',
          ])
          const attempt = spans.find(({ service, kind }) => service === 'toolway' && kind === 'CLIENT')
          expect(said.meta).toEqual({
            'example.com/kept': [1],
            traceparent: `00-${traceId}-${attempt?.spanId}-01`,
            progressToken: expect.any(Number),
          })
          expect(said.header).toBe(server === 'remote' ? said.meta.traceparent : '')
        }
      },
    )

    test('in the stateless era as well, on both sides', async () => {
      const [traceId, spanId] = [newId(16), newId(8)]
      const ask = rawModern(toolway, {}, { traceparent: `00-${traceId}-${spanId}-01` })
      const answer = await ask('tools/call', { name: 'modern__mirror', arguments: {} })
      const [call, attempt] = (await collector.whole(traceId, 2)).toSorted((a, b) => (a.kind < b.kind ? 1 : -1))
      expect(call).toMatchObject({
        parentId: spanId,
        kind: 'SERVER',
        attributes: { 'mcp.protocol.version': '2026-07-28' },
      })
      expect(attempt).toMatchObject({ parentId: call?.spanId, kind: 'CLIENT' })
      expect(answer).toContain(`00-${traceId}-${attempt?.spanId}-01`)
    })

    test('spans have the names of the MCP conventions, and lie within one another', async () => {
      const { traceId, spanId } = await http.call('remote__work')
      const spans = await collector.whole(traceId, 4)
      const own = spans.filter(({ service }) => service === 'toolway')
      const [call, attempt] = ['SERVER', 'CLIENT'].map((kind) => own.find((span) => span.kind === kind))
      const common = {
        'mcp.method.name': 'tools/call',
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'work',
        'tool.type': 'forwarded',
        'toolway.server': 'remote',
        'mcp.protocol.version': expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
        'network.transport': 'tcp',
        'network.protocol.name': 'http',
      }
      expect(call).toMatchObject({
        parentId: spanId,
        status: 'UNSET',
        attributes: {
          ...common,
          'toolway.agent': 'default',
          'toolway.call.id': expect.any(String),
          'jsonrpc.request.id': expect.any(String),
          'mcp.session.id': expect.any(String),
        },
      })
      expect(attempt?.attributes).toMatchObject({
        ...common,
        'server.address': '127.0.0.1',
        'server.port': expect.any(String),
      })
      for (const span of own) expect(span.end).toBeGreaterThanOrEqual(span.start)
      expect(attempt?.start).toBeGreaterThanOrEqual(call?.start as bigint)
      expect(attempt?.end).toBeLessThanOrEqual(call?.end as bigint)
    })

    test('real servers need not know of any of this', async () => {
      const { traceId, said } = await http.call('everything__echo', { message: 'hello' })
      expect(said).toBe('Echo: hello')
      const spans = await collector.whole(traceId, 3)
      expect(treeOf(spans)).toEqual([
        'story CLIENT the story',
        '  toolway SERVER tools/call echo',
        '    toolway CLIENT tools/call echo',
      ])
      const attempt = spans.find(({ service, kind }) => service === 'toolway' && kind === 'CLIENT')
      expect(attempt?.attributes['server.port']).toBe(String(everythingPort))
    })

    test('calls of a meta-tool are its children', async () => {
      const one = await http.call('execute_tool', { server: 'piped', tool: 'work', args: {} })
      const asked = (server: string) => ({ server, tool: 'work', args: {} })
      const many = await http.call('execute_tools', { calls: [asked('piped'), asked('remote')] })
      expect(treeOf(await collector.whole(one.traceId, 5))).toEqual([
        'story CLIENT the story',
        '  toolway SERVER tools/call execute_tool',
        '    toolway INTERNAL tools/call work',
        '      toolway CLIENT tools/call work',
        '        traced-server SERVER tools/call work',
      ])
      const tree = treeOf(await collector.whole(many.traceId, 8))
      expect(tree.slice(0, 2)).toEqual(['story CLIENT the story', '  toolway SERVER tools/call execute_tools'])
      const branch = [
        '    toolway INTERNAL tools/call work',
        '      toolway CLIENT tools/call work',
        '        traced-server SERVER tools/call work',
      ]
      expect(tree.slice(2)).toEqual([...branch, ...branch])
    })

    test('errors are in the spans of the component that failed', async () => {
      const failed = await http.call('piped__work', { fail: true })
      const denied = await http.call('execute_tool', { server: 'probe', tool: 'die', args: {} })
      const wrong = await http.call('probe__fail', { error: { code: -32050, message: 'disk full' } })
      expect(treeOf(await collector.whole(failed.traceId, 4))).toEqual([
        'story CLIENT the story',
        '  toolway SERVER tools/call work [tool_error]',
        '    toolway CLIENT tools/call work [tool_error]',
        '      traced-server SERVER tools/call work',
      ])
      expect(treeOf(await collector.whole(denied.traceId, 3))).toEqual([
        'story CLIENT the story',
        '  toolway SERVER tools/call execute_tool [TOOL_BLOCKED]',
        '    toolway INTERNAL tools/call die [TOOL_BLOCKED]',
      ])
      expect(treeOf(await collector.whole(wrong.traceId, 3))).toEqual([
        'story CLIENT the story',
        '  toolway SERVER tools/call fail [-32050]',
        '    toolway CLIENT tools/call fail [-32050]',
      ])
    })

    test('native tools have no client span', async () => {
      const { traceId } = await http.call('native__hash', { text: 'x', algorithm: 'sha256' })
      const spans = await collector.whole(traceId, 2)
      expect(treeOf(spans)).toEqual([
        'story CLIENT the story',
        expect.stringMatching('  toolway SERVER tools/call hash'),
      ])
      expect(spans.find(({ service }) => service === 'toolway')?.attributes['tool.type']).toBe('native')
    })

    test('a trace that its client does not record is not recorded here either, and the server knows', async () => {
      const { traceId, spanId, said } = await http.call('remote__work', {}, { flags: '00' })
      expect(said.meta.traceparent).toBe(`00-${traceId}-${spanId}-00`)
      const next = await http.call('remote__work')
      await collector.whole(next.traceId, 4)
      expect(collector.spans(traceId)).toEqual([])
    })

    test('over stdio as well, by the variables of OpenTelemetry: what a process has seen is sent, compressed, before it ends', async () => {
      const silent = { mcpServers: only('piped') }
      await using folder = await temporaryFolder()
      const args = [...toolwayWords, 'stdio', '--config', await writeConfig(folder.path, silent, randomUUID())]
      const env = {
        ...compiled,
        PATH: String(process.env.PATH),
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_SERVICE_NAME: 'desk',
        OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      }
      const client = await tracedClient({ program: { command: process.execPath, args, env } }, collector)
      await client.client.listTools()
      const { traceId } = await client.call('piped__work')
      await client[Symbol.asyncDispose]()
      const spans = await collector.whole(traceId, 4)
      expect(treeOf(spans)).toEqual([
        'story CLIENT the story',
        '  desk SERVER tools/call work',
        '    desk CLIENT tools/call work',
        '      traced-server SERVER tools/call work',
      ])
      const call = spans.find(({ kind, service }) => kind === 'SERVER' && service === 'desk')
      expect(call?.attributes).toMatchObject({ 'network.transport': 'pipe' })
    })

    test('off, no spans are sent: `_meta` is passed on unchanged, headers are not', async () => {
      await using other = await startToolway({ mcpServers: only('remote') })
      await using client = await tracedClient({ endpoint: other }, collector)
      await client.client.listTools()
      const meta = { tracestate: 'as it = came', baggage: 'a=1' }
      const { traceId, spanId, said } = await client.call('remote__work', {}, { carrier: 'meta', meta })
      const progressToken = expect.any(Number)
      expect(said).toEqual({ meta: { ...meta, traceparent: `00-${traceId}-${spanId}-01`, progressToken }, header: '' })
      expect((await client.call('remote__work', {}, { carrier: 'header' })).said).toEqual({
        meta: { progressToken },
        header: '',
      })
      const spans = await collector.whole(traceId, 2)
      expect(spans.map(({ service }) => service).sort()).toEqual(['story', 'traced-server'])
    })

    test('a reload turns them on and off', async () => {
      const { telemetry } = configured
      const silent = { mcpServers: only('remote') }
      await using other = await startToolway(silent)
      await using client = await tracedClient({ endpoint: other }, collector)
      await client.client.listTools()
      await other.rewrite({ ...silent, telemetry: telemetry as object })
      await other.gateway.reload()
      const { traceId } = await client.call('remote__work')
      await collector.whole(traceId, 4)
      await other.rewrite(silent)
      await other.gateway.reload()
      const off = await client.call('remote__work')
      expect((await collector.whole(off.traceId, 2)).map(({ service }) => service)).not.toContain('toolway')
    })

    test('without a receiver calls succeed, and shutdown is not delayed', async () => {
      const nowhere = { mcpServers: only('remote'), telemetry: { traces: { otlp: 'http://127.0.0.1:9' } } }
      const other = await startToolway(nowhere)
      const client = await tracedClient({ endpoint: other }, collector)
      await client.client.listTools()
      for (let count = 0; count < 5; count++) {
        expect((await client.call('remote__work')).said.meta.traceparent).toMatch(/^00-/)
      }
      await until(() => other.log.lines.some(({ message }) => message.includes('cannot be exported')), {
        what: 'a word about it',
      })
      await client[Symbol.asyncDispose]()
      await other[Symbol.asyncDispose]()
      expect(other.log.lines.filter(({ message }) => message.includes('cannot be exported'))).toHaveLength(1)
    })
  },
)
