import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { Json } from '../core/json.ts'
import type { Shell } from './shell.ts'
import { UsageError } from './usage.ts'

/** What `--args` says: a JSON object, `@file` or `-` for stdin. Nothing of it is rounded or written anew. */
export async function givenArguments(option: string | undefined, shell: Shell): Promise<Given> {
  if (option === undefined) return Json.of({})
  const given = parsed(await source(option, shell))
  const { value } = given
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return given as Given
  throw new UsageError('--args must be a JSON object, such as {"path": "notes.txt"}.')
}

/** A tool's arguments. */
export type Given = Json<Record<string, unknown>>

async function source(option: string, { stdin, cwd }: Shell): Promise<string> {
  if (option === '-') return text(stdin)
  if (!option.startsWith('@')) return option
  const file = option.slice(1)
  return readFile(resolve(cwd, file), 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      error.code === 'ENOENT' ? `There is no file ${file}.` : `Cannot read ${file}: ${error.message}.`,
    )
  })
}

function parsed(json: string): Json {
  try {
    return Json.parse(json)
  } catch (error) {
    throw new UsageError(
      `--args is not valid JSON: ${(error as Error).message}.`,
      'Quote it for your shell, or use --args @file.',
    )
  }
}
