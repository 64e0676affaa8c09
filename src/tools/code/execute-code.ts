import { createHash } from 'node:crypto'
import * as z from 'zod'
import type { Config } from '../../config/schema.ts'
import type { Access } from '../../core/access.ts'
import { type Call, type Caller, ownerKey } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Lease } from '../../core/cluster.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import type { Executor, Isolation, Language } from '../../core/executor.ts'
import type { Result } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { codeAnswer, maxAnswer } from './answer.ts'
import { type CodeLimits, codeLimits, ProgramBridge } from './bridge.ts'
import { javascriptPrelude, pythonPrelude } from './preludes.ts'

export interface ExecuteCodeOptions {
  readonly executor: Executor
  readonly access: Access
  readonly config: Pick<Config['sandbox'], 'languages' | 'timeout' | 'allowNetwork' | 'allowPaths'>
  /** Leases a named environment. Needed if other processes of this gateway run programs too. */
  claim?(environment: string): Promise<Lease>
  readonly clock: Clock
  readonly limits?: CodeLimits
}

const maxSource = 256 * 1024

/**
 * `execute_code` (S7, B9): runs a program that may call exactly the tools that its caller may call. Probes what this
 * machine supports only when the first program runs, so that listing the tool does not start a process.
 */
export function executeCode(options: ExecuteCodeOptions): Tool {
  const { config } = options
  return defineTool({
    name: codeTool,
    title: 'Run a program',
    description: describeSandbox(config),
    input: programInput(config),
    // The program has its own deadline. This timeout also covers the wait before it starts and the work after it.
    timeoutMs: 2 * config.timeout + 10_000,
    timeoutKey: 'sandbox.timeout',
    carries: true,
    counted: true,
    run: (program, { call }) => runProgram(program, call, options),
  })
}

const programInput = ({ languages, timeout }: ExecuteCodeOptions['config']) =>
  z.object({
    code: z
      .string()
      .min(1)
      .refine((code) => Buffer.byteLength(code) <= maxSource, `must not be larger than ${maxSource} bytes`)
      .describe('The program. Top-level await is supported.'),
    language: z.enum(languages as [Language, ...Language[]]).default(usualLanguage(languages)),
    environment: z
      .string()
      .min(1)
      .max(100)
      .optional()
      .describe('A name of your choice. Variables are kept for later runs that use the same name.'),
    timeout_ms: z.int().min(1).max(timeout).default(timeout),
  })

async function runProgram(
  program: z.output<ReturnType<typeof programInput>>,
  call: Call,
  options: ExecuteCodeOptions,
): Promise<Result> {
  const { executor, access, clock, limits = codeLimits } = options
  const { code, language, environment, timeout_ms: timeoutMs } = program
  refuseUnavailable(await executor.probe(), language)
  const key = environment === undefined ? undefined : environmentKey(call.caller, environment, language)
  const claimed = key === undefined ? undefined : await options.claim?.(key)
  if (claimed && 'heldBy' in claimed) throw heldElsewhere(environment as string)
  const bridge = new ProgramBridge(access, call, limits, clock)
  const outcome = await executor.run({
    code,
    language,
    // Without the agent: a caller that may act as several would otherwise have several shares (V6).
    owner: call.caller.principal,
    prelude: language === 'python' ? pythonPrelude : javascriptPrelude,
    environment: key,
    timeoutMs,
    signal: call.signal,
    host: (name, input, signal) => bridge.host(name, input, signal),
  })
  const calls = await bridge.end()
  call.signal.throwIfAborted()
  if (outcome.status === 'refused') {
    const sentence = outcome.error?.message ?? 'The sandbox could not run this program; try again later.'
    throw new ToolwayError('OVERLOADED', sentence)
  }
  const reset = outcome.reset ?? (claimed?.lost ? 'The process that held the environment has ended.' : undefined)
  const answer = codeAnswer({ ...outcome, reset }, calls)
  const content = [{ type: 'text', text: JSON.stringify(answer) }]
  const isError = answer.status !== 'ok'
  // As bytes, because the value may contain numbers that a double cannot hold.
  const body = Buffer.from(JSON.stringify({ content, structuredContent: answer, isError: isError || undefined }))
  return { body: Json.raw(body), isError }
}

/**
 * The error for an environment in another process of this gateway. Calls from stateless clients are forwarded to that
 * process; calls from a session or a chat cannot be forwarded.
 */
const heldElsewhere = (environment: string) =>
  invalidArguments(
    `The environment ${JSON.stringify(environment)} belongs to another process of this gateway, and this call cannot be forwarded there: use another name, or omit "environment".`,
  )

function refuseUnavailable({ tier, languages, missing }: Isolation, language: Language): void {
  if (tier !== undefined && languages.includes(language)) return
  const why = missing.join(' ')
  if (tier === undefined) {
    const sentence = `Programs cannot run here in the isolation that sandbox.minIsolation requires. ${why}`
    throw new ToolwayError('DENIED_BY_POLICY', sentence.trim(), { rule: 'sandbox.minIsolation' })
  }
  const sentence = `${language} cannot run here; "language" must be one of ${languages.join(', ')}. ${why}`
  throw invalidArguments(sentence.trim())
}

export const codeTool = 'execute_code'

/**
 * The key of a named environment, which belongs to one principal acting as one agent. Unauthenticated callers can only
 * be told apart by session, so their keys include the session. JavaScript and TypeScript share an environment.
 */
function environmentKey(caller: Caller, name: string, language: Language): string {
  const { authenticated, session } = caller
  const spoken = language === 'typescript' ? 'javascript' : language
  const key = [ownerKey(caller), authenticated ? null : session, name, spoken]
  return createHash('sha256').update(JSON.stringify(key)).digest('hex')
}

const usualLanguage = (languages: readonly Language[]): Language =>
  languages.includes('javascript') ? 'javascript' : (languages[0] as Language)

/** The key of the environment named in a call's arguments, which are not validated yet. */
export function environmentAsked(
  caller: Caller,
  { environment, language }: Readonly<Record<string, unknown>>,
  languages: readonly Language[],
): string | undefined {
  if (typeof environment !== 'string') return undefined
  const spoken = languages.find((one) => one === language) ?? usualLanguage(languages)
  return environmentKey(caller, environment, spoken)
}

const languageNames = { javascript: 'JavaScript', typescript: 'TypeScript', python: 'Python' }

const scopes = {
  javascript:
    'In scope: await tools.server.tool({…}) calls any of your tools and returns its structured content or text ' +
    '(several at once: Promise.all), await search("task"), await describe("server.tool"); a failed call throws ' +
    'ToolError {code, message}.',
  python:
    'call_tool("server.tool", {…}), call_tools([("server.tool", {…}), …]), search(task), describe(name), ToolError.',
}

/** The information that a model needs to write a program. Keep it short: it is part of every context. */
function describeSandbox(config: ExecuteCodeOptions['config']): string {
  const { languages, timeout, allowNetwork, allowPaths } = config
  const python = languages.includes('python')
  const javascript = languages.some((language) => language !== 'python')
  const withheld = [allowNetwork.length === 0 && 'the network', allowPaths.length === 0 && 'files'].filter(Boolean)
  const without = withheld.length === 0 ? '' : ` without access to ${withheld.join(' or ')}`
  const sentences = [
    `Runs a program (${languages.map((language) => languageNames[language]).join(', ')}) in a sandbox${without}.`,
    'Use it to combine, filter or count the results of many tool calls: you see only the value of the last expression',
    `(or the returned value) and the printed output, up to ${maxAnswer / 1000},000 characters.`,
    javascript && scopes.javascript,
    python && `${javascript ? 'In Python: ' : 'In scope: '}${scopes.python}`,
    javascript && allowNetwork.length > 0 && `In JavaScript, fetch(url) can reach ${abbreviateList(allowNetwork)}.`,
    allowPaths.length > 0 &&
      `Files under ${abbreviateList(allowPaths)} can be read (JavaScript: await readText(path)).`,
    `Limits: ${timeout / 1000} s and ${codeLimits.calls} calls.`,
  ]
  return sentences.filter(Boolean).join(' ')
}

const abbreviateList = (names: readonly string[]): string =>
  names.length > 5 ? `${names.slice(0, 5).join(', ')} and ${names.length - 5} more` : names.join(', ')
