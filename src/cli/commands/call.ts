import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Peer, quietPeer } from '../../core/call.ts'
import { invalidArguments } from '../../core/errors.ts'
import type { Content, Result, ResultBody } from '../../core/result.ts'
import { asRecord } from '../../lib/is-record.ts'
import { argumentsOption, readArguments } from '../arguments.ts'
import type { OptionsOf } from '../command-table.ts'
import {
  createOutput,
  createProgress,
  type ExitCode,
  exit,
  type Output,
  type ProgressLine,
  type Shell,
} from '../kit.ts'
import { openForCommand } from '../open.ts'
import { printable, sizeText } from '../table.ts'

export async function callTool(
  shell: Shell,
  name: string,
  words: string[],
  options: OptionsOf<'call'>,
): Promise<ExitCode> {
  const base = await argumentsOption(options.args, shell)
  await using gateway = await openForCommand(shell, options)
  const caller = gateway.localAs(options.agent)
  const result = await answer()
  const output = createOutput(shell, options.json)
  const written = await writeBlob(result.body.value, options.out, shell)
  if (options.json) printJson(result, shell, output)
  else printText(result, output)
  if (written !== undefined) output.note(written)
  return result.isError ? exit.failed : exit.ok

  async function answer(): Promise<Result> {
    using progress = createProgress(shell)
    progress.show(`Looking for ${name} …`)
    const { entry, definition, restore } = await gateway.view(caller).resolve('tool', name, {
      signal: shell.interrupted,
      timeoutMs: options.wait,
      timeoutKey: '--wait',
      progress: (_, servers) => progress.show(`Waiting for ${servers.join(', ')} to start …`),
    })
    const args = readArguments(words, definition.inputSchema, base)
    progress.show(`Waiting for ${name} …`)
    const id = randomUUID()
    return await gateway.handle({
      id,
      caller,
      entry,
      input: { arguments: restore ? restore(args) : args, meta: shell.stderr.isTTY ? { progressToken: id } : {} },
      signal: shell.interrupted,
      peer: peerFor(name, progress),
      ...(options.timeout !== undefined && { timeoutMs: options.timeout, timeoutKey: '--timeout' }),
    })
  }
}

/** The peer for calls from the terminal: it shows progress but cannot answer sampling or elicitation requests. */
const peerFor = (name: string, progress: ProgressLine): Peer =>
  quietPeer(
    (method) => Promise.reject(invalidArguments(`The command line cannot answer ${method}; use a client that can.`)),
    ({ value }) => {
      const { progress: done, total, message } = value as { progress?: number; total?: number; message?: string }
      progress.show(`${name}: ${done}${total === undefined ? '' : ` of ${total}`} ${message ?? ''}`)
    },
  )

async function writeBlob(body: ResultBody, file: string | undefined, { cwd }: Shell): Promise<string | undefined> {
  if (file === undefined) return undefined
  const blob = firstBlob(body)
  if (!blob) return `The result contains no image, audio or file, so ${file} was not written.`
  await writeFile(resolve(cwd, file), blob.bytes)
  return `Wrote ${file} (${blob.mimeType}, ${sizeText(blob.bytes.length)}).`
}

/** Without a terminal, prints the original bytes, because parsing could change large numbers. */
function printJson({ body }: Result, { stdout }: Shell, { terminal, value }: Output): void {
  if (terminal) value(body.exact)
  else stdout.write(Buffer.concat([body.bytes, Buffer.from('\n')]))
}

function printText({ body, isError }: Result, { terminal, print, note }: Output): void {
  const text = resultText(body.exact)
  if (isError) note(printable(text))
  // Remove control characters only for a terminal.
  else if (text !== '') print(terminal ? printable(text) : text)
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

function blobOf(part: Content) {
  const holder = part.type === 'resource' ? asRecord(part.resource) : part
  const data = textOf(part.type === 'resource' ? holder.blob : part.data)
  if (data === undefined) return undefined
  return { mimeType: textOf(holder.mimeType) ?? 'application/octet-stream', bytes: Buffer.from(data, 'base64') }
}

function partLine(part: Content): string {
  const blob = blobOf(part)
  const { uri, text } = asRecord(part.resource)
  if (blob) return `[${[blob.mimeType, sizeText(blob.bytes.length), ...(uri ? [uri] : [])].join(', ')}]`
  if (part.type === 'text') return textOf(part.text) ?? ''
  if (part.type === 'resource') return textOf(text) ?? `[resource ${uri}]`
  if (part.type === 'resource_link') return `[${part.name ?? 'resource'}: ${part.uri}]`
  return `[${part.type}]`
}

/** A tool's result as text; other content is described, and structured content is shown if there is no text. */
export function resultText({ content = [], structuredContent }: ResultBody): string {
  const lines = content.map(partLine)
  const hasText = content.some(({ type, text }) => type === 'text' && text !== '')
  if (structuredContent !== undefined && !hasText) lines.push(JSON.stringify(structuredContent, undefined, 2))
  return lines.join('\n')
}

/** The first image, sound or file in a result. */
export const firstBlob = ({ content = [] }: ResultBody) => content.map(blobOf).find((blob) => blob !== undefined)
