import * as z from 'zod'
import type { Config } from '../../config/schema.ts'
import type { Access } from '../../core/access.ts'
import type { Call } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Lease } from '../../core/cluster.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Executor, Isolation, Language } from '../../core/executor.ts'
import { type Result, resultOf } from '../../core/result.ts'
import { defineTool, type Tool } from '../define.ts'
import { codeAnswer } from './answer.ts'
import { createBridge } from './bridge.ts'
import { describeSandbox } from './describe-sandbox.ts'
import { codeTool, environmentKey, ownerOf, usualLanguage } from './environment.ts'
import { type CodeLimits, codeLimits } from './limits.ts'
import { javascriptPrelude } from './prelude-javascript.ts'
import { pythonPrelude } from './prelude-python.ts'

export interface ExecuteCodeOptions {
  readonly executor: Executor
  readonly access: Access
  readonly config: Pick<Config['sandbox'], 'languages' | 'timeout' | 'allowNetwork' | 'allowPaths'>
  /** Makes a named environment ours, where others run programs, too. */
  claim?(environment: string): Promise<Lease>
  readonly clock: Clock
  readonly limits?: CodeLimits
}

const maxSource = 256 * 1024

/**
 * `execute_code` (S7, B9): runs a program that may call all that its caller may call, and nothing else. What this machine
 * really offers is found out by the first program: to list a tool, no process should have to be started.
 */
export function executeCode(options: ExecuteCodeOptions): Tool {
  const { config } = options
  const { languages } = config
  return defineTool({
    name: codeTool,
    title: 'Run a program',
    description: describeSandbox(config),
    input: z.object({
      code: z
        .string()
        .min(1)
        .refine((code) => Buffer.byteLength(code) <= maxSource, `it may have ${maxSource} bytes`)
        .describe('The program; await works at its top level.'),
      language: z.enum(languages as [Language, ...Language[]]).default(usualLanguage(languages)),
      environment: z
        .string()
        .min(1)
        .max(100)
        .optional()
        .describe('A name of your own: variables stay for the next run of the same name.'),
      timeout_ms: z.int().min(1).max(config.timeout).default(config.timeout),
    }),
    // The program ends by its own deadline; this one is for what waits before it and for what comes after.
    timeoutMs: 2 * config.timeout + 10_000,
    timeoutKey: 'sandbox.timeout',
    carries: true,
    run: (program, { call }) => runProgram(program, call, options),
  })
}

interface Asked {
  readonly code: string
  readonly language: Language
  readonly environment?: string | undefined
  readonly timeout_ms: number
}

async function runProgram(program: Asked, call: Call, options: ExecuteCodeOptions): Promise<Result> {
  const { executor, access, clock, limits = codeLimits } = options
  const { code, language, environment, timeout_ms: timeoutMs } = program
  refuseUnavailable(await executor.probe(), language)
  const key = environment === undefined ? undefined : environmentKey(call.caller, environment, language)
  const claimed = key === undefined ? undefined : await options.claim?.(key)
  if (claimed && 'heldBy' in claimed) throw heldElsewhere(environment as string)
  const bridge = createBridge({ access, call, limits, clock })
  const outcome = await executor.run({
    code,
    language,
    owner: ownerOf(call.caller),
    prelude: language === 'python' ? pythonPrelude : javascriptPrelude,
    ...(key !== undefined && { environment: key }),
    timeoutMs,
    signal: call.signal,
    host: bridge.host,
  })
  const calls = await bridge.end()
  call.signal.throwIfAborted()
  if (outcome.status === 'refused') {
    const sentence = outcome.error?.message ?? 'The sandbox could not run this program; try again later.'
    throw new ToolwayError('OVERLOADED', sentence)
  }
  const reset = outcome.reset ?? (claimed?.lost ? 'The process that held it is gone.' : undefined)
  const answer = codeAnswer({ ...outcome, ...(reset !== undefined && { reset }) }, calls)
  const failed = answer.status !== 'ok'
  return resultOf({
    content: [{ type: 'text', text: JSON.stringify(answer) }],
    structuredContent: answer,
    ...(failed && { isError: true }),
  })
}

/** Calls of stateless clients are led there; those of a session, and of a chat, stay where they are. */
const heldElsewhere = (environment: string) =>
  new ToolwayError(
    'INVALID_ARGUMENTS',
    `The environment ${JSON.stringify(environment)} lives in another process of this gateway, where it was begun, and this call cannot be led there: use another name, or none.`,
  )

function refuseUnavailable({ tier, languages, missing }: Isolation, language: Language): void {
  if (tier !== undefined && languages.includes(language)) return
  const why = missing.join(' ')
  if (tier === undefined) {
    const sentence = `No program can be run here in isolation as strong as the operator wants it. ${why}`
    throw new ToolwayError('DENIED_BY_POLICY', sentence.trim(), { rule: 'sandbox.minIsolation' })
  }
  const sentence = `${language} cannot be run here; "language" must be one of ${languages.join(', ')}. ${why}`
  throw new ToolwayError('INVALID_ARGUMENTS', sentence.trim())
}
