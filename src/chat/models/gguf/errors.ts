import { arch, platform } from 'node:process'
import { ToolwayError } from '../../../core/errors.ts'

const builds: Readonly<Record<string, string>> = {
  'darwin arm64': 'mac-arm64-metal',
  'darwin x64': 'mac-x64',
  'linux arm64': 'linux-arm64',
  'win32 arm64': 'win-arm64',
  'win32 x64': 'win-x64',
}

/** The command to install the library. It omits builds for other platforms, which together are ten times as large. */
const command = `npm install --omit=optional node-llama-cpp @node-llama-cpp/${builds[`${platform} ${arch}`] ?? 'linux-x64'}`

export const notInstalled = (name: string, cause: unknown): ToolwayError =>
  modelUnavailable(name, `needs node-llama-cpp, which is not installed. Install it next to Toolway: ${command}`, cause)

export const noBuild = (name: string, cause: unknown): ToolwayError =>
  modelUnavailable(name, `needs a build of node-llama-cpp for this platform. Install it: ${command}`, cause)

export const modelFileMissing = (name: string, path: string, cause: unknown): ToolwayError =>
  modelUnavailable(
    name,
    `cannot be loaded: reading ${path} failed (${systemCode(cause)}). Check models.${name}.path.`,
    cause,
  )

export const noGguf = (name: string, path: string): ToolwayError =>
  modelUnavailable(
    name,
    `cannot be loaded: ${path} is not a GGUF file. Check models.${name}.path, or convert the model.`,
  )

/** The error for a file that cannot be loaded. It quotes llama.cpp's message, which is the most precise. */
export function cannotLoad(name: string, path: string, logged: string, cause: unknown): ToolwayError {
  const why = 'The file may be damaged, incomplete, or unsupported by this version of node-llama-cpp.'
  const quote = logged === '' ? '' : ` llama.cpp says: ${logged}`
  return modelUnavailable(name, `cannot be loaded from ${path}. ${why}${quote}`, cause)
}

const useLess = (name: string) => `Use a smaller model, or lower models.${name}.context.`

export const noMemory = (name: string, needed: number, free: number): ToolwayError =>
  modelUnavailable(name, `needs ${gibibytes(needed)} of memory, but only ${gibibytes(free)} is free. ${useLess(name)}`)

export const modelOutOfMemory = (name: string, cause: unknown): ToolwayError =>
  modelUnavailable(name, `does not fit in memory. ${useLess(name)}`, cause)

export function generationFailed(name: string, cause: unknown): ToolwayError {
  const why = cause instanceof Error ? cause.message : cause
  return modelUnavailable(name, `failed while generating an answer (${why}). Try again.`, cause)
}

export const modelClosed = (name: string): ToolwayError =>
  modelUnavailable(name, 'is shutting down. Try again after Toolway has restarted.')

export const conversationTooLong = (name: string, tokens: number, context: number): ToolwayError =>
  new ToolwayError(
    'INVALID_ARGUMENTS',
    `The conversation has ${tokens} tokens, but the model ${name} has a context of ${context} tokens, including its answer. Send less text or fewer tools, or raise models.${name}.context.`,
  )

export const textOnly = (name: string): ToolwayError =>
  new ToolwayError('INVALID_ARGUMENTS', `The model ${name} accepts only text. Remove images and audio.`)

export const modelQueueFull = (name: string, waiting: number): ToolwayError =>
  new ToolwayError(
    'OVERLOADED',
    `The model ${name} answers one request at a time, and ${waiting} are waiting. Try again later.`,
  )

export const modelTooSlow = (name: string, ms: number): ToolwayError =>
  new ToolwayError(
    'TIMEOUT',
    `The model ${name} did not answer within ${ms / 1000} s. Shorten the request, or raise models.${name}.timeout.`,
  )

const modelUnavailable = (name: string, what: string, cause?: unknown): ToolwayError =>
  new ToolwayError('SERVER_UNAVAILABLE', `The model ${name} ${what}`, { cause })

const gibibytes = (bytes: number): string => `${(bytes / 1024 ** 3).toFixed(1)} GiB`

const systemCode = (thrown: unknown): string => (thrown as NodeJS.ErrnoException).code ?? 'unknown reason'
