import { constants } from 'node:fs'
import { open, realpath } from 'node:fs/promises'
import { isAbsolute, relative } from 'node:path'
import type { Config } from '../config/schema.ts'
import { ToolwayError } from '../core/errors.ts'
import { HostRefusal, type Program } from '../core/executor.ts'
import { FairSemaphore } from '../core/limits/fair-semaphore.ts'
import type { Log } from '../core/log.ts'
import { parseJson } from '../json/parse-json.ts'
import { matches } from '../lib/wildcard.ts'
import { type HostCallError, messageKinds } from './guest/protocol.ts'
import type { Limits, SandboxChild } from './runtime.ts'

/**
 * Runs the program's host calls with limited concurrency. Returns a function that accepts one call; that function
 * returns false if the call is malformed, repeated or exceeds the maximum number of calls.
 */
export function createHostCalls(options: {
  readonly child: SandboxChild
  readonly host: Program['host']
  readonly limits: Limits
  readonly signal: AbortSignal
  readonly log: Log
}): (id: number, payload: Buffer) => boolean {
  const { child, host, limits, signal, log } = options
  const slots = new FairSemaphore({ slots: limits.callsAtOnce })
  const seen = new Set<number>()

  const run = async (id: number, name: string, input: string) => {
    try {
      using _ = await slots.take('', signal)
      const text = await host(name, input, signal)
      if (signal.aborted) return
      const { answerBytes } = limits
      if (Buffer.byteLength(text) > answerBytes)
        throw new HostRefusal('OVERLOADED', `The result of ${name} exceeds ${answerBytes} bytes; request less.`)
      // A call counts as running until the program has read its answer.
      await child.send(messageKinds.answer, id, text)
    } catch (thrown) {
      if (!signal.aborted) await child.send(messageKinds.refusal, id, JSON.stringify(hostCallError(thrown, log)))
    }
  }

  return (id, payload) => {
    if (seen.has(id) || seen.size >= limits.calls) return false
    seen.add(id)
    const text = payload.toString()
    const end = text.indexOf('\n')
    if (end <= 0 || end > 256) return false
    void run(id, text.slice(0, end), text.slice(end + 1))
    return true
  }
}

/** The error that the program sees. Our own errors are passed on; others are logged and hidden. */
function hostCallError(thrown: unknown, log: Log): HostCallError {
  if (thrown instanceof HostRefusal || thrown instanceof ToolwayError)
    return { code: thrown.code, message: thrown.message }
  log.error({ err: thrown }, 'host function failed')
  return { code: 'INTERNAL', message: "Internal error; see Toolway's log." }
}

/** A request from a program. Redirects are not followed; the program can request the new address. */
interface SandboxRequest {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

interface SandboxResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Makes a request for a program, to a checked address, without following redirects. */
export type SandboxFetch = (request: SandboxRequest, signal: AbortSignal) => Promise<SandboxResponse>

/** Adds `sandbox.readText` and `sandbox.fetch`, as allowed by the configuration, to the host functions. */
export function withSandboxCalls(options: {
  readonly host: Program['host']
  readonly config: Pick<Config['sandbox'], 'allowPaths' | 'allowNetwork'>
  readonly fetch: SandboxFetch | undefined
  readonly limits: Limits
}): Program['host'] {
  const { host, config, fetch, limits } = options
  return async (name, input, signal) => {
    if (!name.startsWith('sandbox.')) return host(name, input, signal)
    if (name === 'sandbox.readText') return readText(input, config.allowPaths, limits.answerBytes)
    if (name !== 'sandbox.fetch') throw new HostRefusal('TOOL_NOT_FOUND', `Unknown function ${name}.`)
    if (!fetch) throw new HostRefusal('UNSAFE_URL', 'Programs have no network access (sandbox.allowNetwork).')
    return JSON.stringify(await fetch(sandboxRequest(input, config.allowNetwork), signal))
  }
}

async function readText(input: string, folders: readonly string[], maxBytes: number): Promise<string> {
  const path = (parseCallInput(input) as { path?: unknown }).path
  if (typeof path !== 'string' || !isAbsolute(path) || path.includes('\0')) throw fileRefusal('Use an absolute path.')
  if (folders.length === 0) throw fileRefusal('No files may be read (sandbox.allowPaths is empty).')
  const real = await realpath(path).catch(() => undefined)
  const roots = await Promise.all(folders.map((folder) => realpath(folder).catch(() => undefined)))
  if (real === undefined || !roots.some((root) => root !== undefined && isInFolder(root, real)))
    throw fileRefusal(outsideFolders)
  // Refuse symbolic links, and do not block on pipes.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  await using file = await open(real, flags).catch(() => {
    throw fileRefusal(outsideFolders)
  })
  const stat = await file.stat()
  // A parent folder may have been replaced after the check above.
  if (!stat.isFile() || (await realpath(real)) !== real) throw fileRefusal(outsideFolders)
  if (stat.size > maxBytes / 2) throw fileRefusal(`The file is larger than ${maxBytes / 2} bytes.`)
  return JSON.stringify((await file.readFile()).subarray(0, maxBytes / 2).toString())
}

const outsideFolders = 'No such file in the allowed folders (sandbox.allowPaths).'
const fileRefusal = (message: string) => new HostRefusal('INVALID_PATH', message)

function isInFolder(root: string, path: string): boolean {
  const rest = relative(root, path)
  return rest !== '' && rest.split('/')[0] !== '..' && !isAbsolute(rest)
}

function sandboxRequest(input: string, hosts: readonly string[]): SandboxRequest {
  const { url, method = 'GET', headers = {}, body } = parseCallInput(input) as Record<string, unknown>
  const target = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  if (!target || !/^https?:$/.test(target.protocol)) throw noRequest('Use an http or https URL.')
  if (!hosts.some((pattern) => matches(pattern, target.hostname))) {
    throw noRequest(`Programs may not access ${target.hostname} (sandbox.allowNetwork).`)
  }
  if (typeof method !== 'string' || !isTexts(headers) || (body !== undefined && typeof body !== 'string')) {
    throw new HostRefusal(
      'INVALID_ARGUMENTS',
      'method and body must be strings, and headers must be an object of strings.',
    )
  }
  // With a different Host header, the request could reach another virtual host.
  if (Object.keys(headers).some((name) => name.toLowerCase() === 'host')) {
    throw noRequest('Remove the header "host": it is set from the URL.')
  }
  return { url: target.href, method, headers, body }
}

const noRequest = (message: string) => new HostRefusal('UNSAFE_URL', message)

const isTexts = (value: unknown): value is Record<string, string> =>
  typeof value === 'object' && value !== null && Object.values(value).every((text) => typeof text === 'string')

function parseCallInput(input: string): object {
  const value = parseJson(input)
  if (typeof value === 'object' && value !== null) return value
  throw new HostRefusal('INVALID_ARGUMENTS', 'The input must be a JSON object.')
}
