import { createManualClock } from '../../../tests/fixtures/clock.ts'
import type { Access, Served, View } from '../../core/access.ts'
import type { Call, Interceptor } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { bodyOf, callOf, createTestGateway, type TestGatewayOptions } from '../access.fixture.ts'
import type { Tool } from '../define-tool.ts'
import { toolSource } from '../tool-source.ts'
import type { CodeAnswer } from './answer.ts'
import { type CodeLimits, codeLimits } from './bridge.ts'
import { type ExecuteCodeOptions, executeCode } from './execute-code.ts'
import { createFixtureExecutor, type FixtureExecutor } from './executor.fixture.ts'

export interface TestExecutor {
  readonly executor: FixtureExecutor
  readonly tool: Tool
  /** The calls that programs have made, in order. */
  readonly inner: readonly Call[]
  /** Runs a program as a front end would, and gives what `execute_code` answers. */
  run(code: string, more?: RunOptions): Promise<CodeAnswer>
}

export interface RunOptions extends Partial<Call> {
  /** Besides the code. */
  readonly args?: Readonly<Record<string, unknown>>
}

export interface WorkshopOptions extends Pick<TestGatewayOptions, 'servers'>, Pick<ExecuteCodeOptions, 'claim'> {
  readonly interceptors?: readonly Interceptor[]
  readonly executor?: FixtureExecutor
  readonly limits?: Partial<CodeLimits>
  readonly config?: Partial<ExecuteCodeOptions['config']>
  /** `server.tool` that the caller may not use. */
  readonly denied?: readonly string[]
}

const sandbox: ExecuteCodeOptions['config'] = {
  languages: ['javascript', 'typescript', 'python'],
  timeout: 30_000,
  allowNetwork: [],
  allowPaths: [],
}

/** `execute_code` as the native tool of a minimal gateway. */
export function createCodeTool(options: WorkshopOptions): TestExecutor {
  const { executor = createFixtureExecutor(), interceptors = [], denied = [] } = options
  const isDenied = ({ entry }: Pick<Served, 'entry'>) => denied.includes(`${entry.server}.${entry.name}`)
  const decided: Interceptor = async (call, next) => {
    if (isDenied(call)) throw new ToolwayError('DENIED_BY_POLICY', 'a rule says no', { rule: 'agents.a.deny.tools[0]' })
    return next(call)
  }
  const inner: Call[] = []
  const noted: Interceptor = (call, next) => {
    if (call.parent !== undefined) inner.push(call)
    return next(call)
  }
  const access = {
    handle: (call: Call) => gateway.handle(call),
    view: () => within(gateway.view({} as never), (served) => !isDenied(served)),
  } as unknown as Access
  const tool = executeCode({
    executor,
    access,
    config: { ...sandbox, ...options.config },
    ...(options.claim && { claim: options.claim }),
    clock: createManualClock(),
    limits: { ...codeLimits, ...options.limits },
  })
  const own = {
    name: 'native',
    origin: 'native',
    description: '',
    timeoutMs: 1000,
    clock: createManualClock(),
  } as const
  const gateway = createTestGateway({
    servers: { ...options.servers, native: () => toolSource({ ...own, tools: [tool] }) },
    interceptors: [noted, decided, ...interceptors],
    meta: { access },
  })
  return {
    executor,
    tool,
    inner,
    async run(code, { args, ...more } = {}) {
      const { entry } = await gateway.view({} as never).find('tool', 'native', 'execute_code')
      const body = bodyOf(await gateway.handle(callOf(entry, { code, ...args }, more)))
      const answer = body.structuredContent as CodeAnswer
      if (JSON.stringify(answer) !== body.content?.[0]?.text) throw new Error('text and structured content differ')
      if ((answer.status !== 'ok') !== (body.isError === true)) throw new Error('a failed program must be an error')
      return answer
    },
  }
}

/** A view as policy makes it: what may not be used is found, but never listed. */
function within(view: View, may: (served: Served) => boolean): View {
  return {
    ...view,
    list: (kind) => view.list(kind).filter(may),
    search: async (query, asked) => {
      const { tools, total } = await view.search(query, asked)
      return { tools: tools.filter(may), total }
    },
  }
}

/** The value of a program that must succeed. */
export async function successOf(answer: Promise<CodeAnswer>): Promise<unknown> {
  const { status, error, value } = await answer
  if (status !== 'ok') throw new Error(`${status}: ${error?.name}: ${error?.message}`)
  return value
}
