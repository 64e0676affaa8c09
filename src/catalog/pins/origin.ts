import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import type { ServerConfig } from '../../config/schema.ts'

/** Where a server comes from: whether it is still the same place, and a text for people without anything secret. */
export interface ServerOrigin {
  readonly hash: string
  readonly text: string
}

/** Programs whose first word names what they run. */
const runners = new Set([
  'npx',
  'bunx',
  'uvx',
  'pipx',
  'node',
  'deno',
  'bun',
  'python',
  'python3',
  'docker',
  'podman',
  'uv',
])

/** Arguments and addresses may hold secrets, so that only a hash and the most telling word of them is kept. */
export function originOf(config: ServerConfig): ServerOrigin {
  if (config.transport === 'stdio') {
    const { command, args } = config
    const program = basename(command).replace(/\.(?:exe|cmd)$/i, '')
    const what = runners.has(program)
      ? args.find((word) => /^[@\w][\w@./:-]*$/.test(word) && !/^(?:run|exec|x)$/.test(word))
      : undefined
    return { hash: digest(['stdio', command, ...args]), text: [program, what ?? ''].join(' ').trim() }
  }
  const address = URL.canParse(config.url) ? new URL(config.url) : undefined
  const text = address ? address.origin + address.pathname : config.transport
  // Without the query, where keys are rotated.
  return { hash: digest([config.transport, text]), text }
}

const digest = (words: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(words)).digest('hex').slice(0, 16)
